#include "distributed/mail.h"

#include <algorithm>
#include <vector>

namespace riffle::distributed {
namespace {

constexpr std::uint32_t letter_round = 0;
constexpr std::uint32_t data_round = 1;
constexpr Seconds slice{0.02};  // how long a receive from anybody keeps the letters to itself

std::span<std::byte> bytes_of(Letter& letter) {
  return std::as_writable_bytes(std::span(&letter, 1));
}

}  // namespace

Mail::Mail(Engine& engine, std::uint64_t channel, Group group)
    : engine_(engine), channel_(channel), group_(std::move(group)) {}

Tag Mail::tag(int user_tag, std::uint32_t round) const {
  return {channel_, static_cast<std::uint32_t>(user_tag), round};
}

Mail::Slot& Mail::slot(int tag) {
  const std::scoped_lock lock(mutex_);
  return slots_[tag];
}

std::shared_ptr<Message> Mail::send(Message::What what, Done done) {
  what.group = &group_;
  auto message = std::make_shared<Message>(engine_, std::move(what), std::move(done));
  const Rank to = message->what().peer;
  message->envelope() = message->letter();
  const Request letter =
      engine_.send(to, tag(message->what().tag, letter_round), bytes_of(message->envelope()));
  message->start(to, letter,
                 engine_.send(to, tag(message->what().tag, data_round), message->what().data));
  return message;
}

std::shared_ptr<Message> Mail::receive(Message::What what, Done done) {
  what.group = &group_;
  auto message = std::make_shared<Message>(engine_, std::move(what), std::move(done));
  Slot& box = slot(message->what().tag);
  const std::scoped_lock lock(box.mutex);
  box.waiting.push_back(message);
  turn(box);
  return message;
}

// A receive from a known member, whose letter may have been asked for already.
bool Mail::start(Slot& slot, Message& message) {
  const Rank from = message.what().peer;
  if (slot.boxes.contains(from)) return take(slot, message, from);
  const Request letter =
      engine_.receive(from, tag(message.what().tag, letter_round), bytes_of(message.envelope()));
  message.start(from, letter,
                engine_.receive(from, tag(message.what().tag, data_round), message.what().data));
  return true;
}

// A letter that was asked for, once it has come.
bool Mail::take(Slot& slot, Message& message, Rank from) {
  Letterbox& box = slot.boxes.at(from);
  if (!engine_.test(box.request)) return false;
  message.envelope() = *box.letter;
  slot.boxes.erase(from);
  message.start(from, {},
                engine_.receive(from, tag(message.what().tag, data_round), message.what().data));
  message.check_letter();
  return true;
}

bool Mail::take_first(Slot& slot, Message& message) {
  for (const Rank rank : group_) {
    if (rank == engine_.rank()) continue;
    Letterbox& box = slot.boxes[rank];
    if (box.letter == nullptr) {
      box.letter = std::make_unique<Letter>();
      box.request =
          engine_.receive(rank, tag(message.what().tag, letter_round), bytes_of(*box.letter));
    }
    if (take(slot, message, rank)) return true;
  }
  return false;
}

// Starts what can be started, in order.
void Mail::turn(Slot& slot) {
  while (!slot.waiting.empty()) {
    Message& first = *slot.waiting.front();
    try {
      if (first.finished())  // its time was up
        ;
      else if (first.what().peer >= 0 ? !start(slot, first) : !take_first(slot, first))
        return;
    } catch (const CommError& error) {
      first.fail(error.group().empty()
                     ? std::make_exception_ptr(CommError(error.failure(), error.rank(),
                                                         error.host(), first.context(), ""))
                     : std::current_exception());
    }
    slot.waiting.pop_front();
  }
}

bool Mail::test(Message& message) {
  if (!message.started() && !message.finished()) {
    Slot& box = slot(message.what().tag);
    const std::unique_lock lock(box.mutex, std::try_to_lock);
    if (lock.owns_lock()) turn(box);
  }
  return message.test();
}

bool Mail::wait(Message& message, Deadline until) {
  while (!message.started() && !message.finished()) {
    Slot& box = slot(message.what().tag);
    const std::scoped_lock lock(box.mutex);
    turn(box);
    if (message.started() || message.finished()) break;
    message.test();  // its time may be up
    if (Clock::now() >= until) return message.finished();
    std::vector<Request> letters;
    for (const auto& [rank, each] : box.boxes) letters.push_back(each.request);
    try {
      engine_.await_any(letters, {.deadline = std::min(until, after(slice)),
                                  .context = message.context(),
                                  .watch = group_.ranks()});
    } catch (const CommError& error) {
      if (error.failure() != CommFailure::timed_out) message.fail(std::current_exception());
    }
  }
  return message.wait(until);
}

}  // namespace riffle::distributed
