#include "engine/store/session.h"

namespace riffle::store {

Session::Session(Table& table, const std::string& token) : table_(table), token_(token) {}

bool Session::advance(std::optional<std::string>& changed) {
  changed.reset();
  if (waiting_ || !output().empty()) return false;
  try {
    const auto body = framer_.next();
    if (!body) return false;
    if (!has_shaken_hands_) {
      handshake(*body);
      return true;
    }
    Command command = decode_command(*body);
    if (const auto answer = table_.apply(command)) {
      reply(*answer);
      if (changes(command, *answer)) changed = command.key;
    } else if (command.timeout_milliseconds == 0) {
      reply({.status = Status::timed_out});
    } else {
      waiting_ = std::move(command);
    }
    return true;
  } catch (const Refusal& refusal) {
    reply({.status = Status::denied, .value = refusal.what()});
    throw;
  }
}

void Session::handshake(std::string_view body) {
  const std::string_view token = decode_hello(body);
  if (!equal_in_constant_time(token_, token)) throw Refusal("a wrong token");
  has_shaken_hands_ = true;
  framer_.set_limit(max_message);
  reply({});
}

void Session::key_changed() {
  if (!waiting_) return;
  const auto answer = table_.apply(*waiting_);
  if (!answer) return;
  waiting_.reset();
  reply(*answer);
}

void Session::give_up() {
  if (!waiting_) return;
  waiting_.reset();
  reply({.status = Status::timed_out});
}

std::string_view Session::output() const {
  return std::string_view(output_).substr(sent_);
}

void Session::sent(std::size_t bytes) {
  sent_ += bytes;
  if (sent_ < output_.size()) return;
  output_ = std::string();
  sent_ = 0;
}

}  // namespace riffle::store
