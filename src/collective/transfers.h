// The messages of one operation that are under way, each with a note on what it is for.
#pragma once

#include <optional>
#include <vector>

#include "riffle/engine.h"

namespace riffle::collective {

class Transfers {
 public:
  enum class Kind { header_send, header_receive, send, receive };
  struct Note {
    Kind kind;
    int member;       // the peer
    int segment = 0;  // of a header_receive: which header
    Tag tag;
  };

  explicit Transfers(Engine& engine) : engine_(&engine) {}
  ~Transfers() { cancel(); }
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  void add(Request request, const Note& note);
  [[nodiscard]] bool empty() const { return open_ == 0; }
  // One that is done, if there is any. CommError when one has failed.
  std::optional<Note> test();
  // Blocks until one is done. CommError as Engine::wait_any.
  Note wait(const Wait& how);
  // Those not known to be done, in no order.
  [[nodiscard]] std::vector<Note> open() const;
  // Gives up all that are open; open() still tells which those were.
  void cancel() noexcept;

 private:
  Note take(std::size_t index);

  Engine* engine_;
  std::vector<Request> requests_;  // with gaps
  std::vector<Note> notes_;
  std::vector<char> used_;
  std::vector<std::size_t> free_;
  std::size_t open_ = 0;
};

}  // namespace riffle::collective
