// Messages from member to member of a team. Those of one sender, receiver and tag are received in
// the order they were sent. Messages start at once and wait for nothing that is queued.
//
// A receive from anybody takes the letter that comes first. While it waits, a letter is asked for
// from every member; those that it does not take stay for the next receive that fits. Receives of
// its tag that come after it wait for their turn.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "distributed/message.h"

namespace riffle::distributed {

class Mail {
 public:
  // `channel` names the team's messages; the same on all members.
  Mail(Engine& engine, std::uint64_t channel, Group group);

  std::shared_ptr<Message> send(Message::What what, Done done);
  std::shared_ptr<Message> receive(Message::What what, Done done);
  // As Message::test and wait, for messages of ours.
  bool test(Message& message);
  bool wait(Message& message, Deadline until);

 private:
  struct Letterbox {
    Request request;
    std::unique_ptr<Letter> letter;
  };
  struct Slot {  // of one tag
    std::mutex mutex;
    std::deque<std::shared_ptr<Message>> waiting;
    std::map<Rank, Letterbox> boxes;  // letters asked for, and not taken yet
  };

  [[nodiscard]] Tag tag(int user_tag, std::uint32_t round) const;
  Slot& slot(int tag);
  bool start(Slot& slot, Message& message);
  void turn(Slot& slot);
  bool take_first(Slot& slot, Message& message);
  bool take(Slot& slot, Message& message, Rank from);

  Engine& engine_;
  std::uint64_t channel_;
  Group group_;
  std::mutex mutex_;
  std::map<int, Slot> slots_;
};

}  // namespace riffle::distributed
