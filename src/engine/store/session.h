// One client's conversation with the store, without its socket: bytes come in, bytes go out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/store/protocol.h"
#include "engine/store/table.h"

namespace riffle::store {

class Session {
 public:
  // Both outlive the session.
  Session(Table& table, const std::string& token);

  void receive(std::string_view bytes) { framer_.feed(bytes); }

  // Handles one complete message, if there is one and nothing of the last one is left to do;
  // whether it did. The key it changed, if any, is put into `changed`. Refusal for anything that
  // is no message, or a wrong token: send what is left of output(), then close.
  bool advance(std::optional<std::string>& changed);

  // The wait that has no answer yet.
  [[nodiscard]] const std::optional<Command>& waiting() const { return waiting_; }
  // Its key has changed: answers it if it is fulfilled.
  void key_changed();
  // Its time is over.
  void give_up();

  [[nodiscard]] bool has_shaken_hands() const { return has_shaken_hands_; }
  // True in the middle of a message.
  [[nodiscard]] bool partial() const { return framer_.partial(); }

  // Bytes to send, and how many of them have been sent.
  [[nodiscard]] std::string_view output() const;
  void sent(std::size_t bytes);

 private:
  void handshake(std::string_view body);
  void reply(const Reply& reply) { output_ += encode(reply); }

  Table& table_;
  const std::string& token_;
  Framer framer_{max_hello};
  bool has_shaken_hands_ = false;
  std::optional<Command> waiting_;
  std::string output_;
  std::size_t sent_ = 0;
};

}  // namespace riffle::store
