#include "engine/store/table.h"

#include <charconv>

namespace riffle::store {

namespace {

constexpr std::size_t entry_overhead = 96;  // a node of the map with its two strings

std::size_t cost(const std::string& key, const std::string& value) {
  return key.size() + value.size() + entry_overhead;
}

}  // namespace

std::optional<Reply> Table::apply(const Command& command) {
  switch (command.operation) {
    case Operation::set:
      return put(command.key, command.value);
    case Operation::get:
      return get(command.key);
    case Operation::wait: {
      Reply reply = get(command.key);
      return reply.status == Status::ok ? std::optional(std::move(reply)) : std::nullopt;
    }
    case Operation::wait_change: {
      Reply reply = get(command.key);
      return reply.value != command.expected ? std::optional(std::move(reply)) : std::nullopt;
    }
    case Operation::add:
      return add(command.key, command.delta);
    case Operation::compare_and_set:
      return compare_and_set(command);
    case Operation::remove:
      return remove(command.key);
    case Operation::list:
      return list(command.key);
  }
  return Reply{.status = Status::denied, .value = "an unknown operation"};
}

Reply Table::get(const std::string& key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return {.status = Status::missing};
  return {.status = Status::ok, .value = found->second};
}

Reply Table::put(const std::string& key, std::string value) {
  const auto found = entries_.find(key);
  const std::size_t before = found == entries_.end() ? 0 : cost(key, found->second);
  const std::size_t after = bytes_ - before + cost(key, value);
  if (after > capacity_) return {.status = Status::full};
  bytes_ = after;
  if (found == entries_.end())
    entries_.emplace(key, std::move(value));
  else
    found->second = std::move(value);
  return {};
}

Reply Table::add(const std::string& key, std::int64_t delta) {
  std::int64_t number = 0;
  const Reply now = get(key);
  if (now.value) {
    const char* end = now.value->data() + now.value->size();
    const auto [stop, error] = std::from_chars(now.value->data(), end, number);
    if (error != std::errc() || stop != end)
      return {.status = Status::not_a_number, .value = now.value};
  }
  std::int64_t sum = 0;
  if (__builtin_add_overflow(number, delta, &sum))
    return {.status = Status::not_a_number, .value = now.value};
  Reply reply = put(key, std::to_string(sum));
  if (reply.status == Status::ok) reply.value = std::to_string(sum);
  return reply;
}

Reply Table::compare_and_set(const Command& command) {
  const Reply now = get(command.key);
  if (now.value != command.expected) return {.status = Status::differs, .value = now.value};
  return put(command.key, command.value);
}

Reply Table::remove(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return {.status = Status::missing};
  bytes_ -= cost(key, found->second);
  entries_.erase(found);
  return {};
}

// Keys have no control characters, so a line each.
Reply Table::list(const std::string& prefix) const {
  std::string keys;
  for (auto entry = entries_.lower_bound(prefix);
       entry != entries_.end() && entry->first.starts_with(prefix); ++entry) {
    keys += entry->first + '\n';
    if (keys.size() > static_cast<std::size_t>(max_store_value.count))
      return {.status = Status::full};
  }
  return {.status = Status::ok, .value = std::move(keys)};
}

bool changes(const Command& command, const Reply& reply) {
  if (reply.status != Status::ok) return false;
  return command.operation == Operation::set || command.operation == Operation::add ||
         command.operation == Operation::compare_and_set || command.operation == Operation::remove;
}

}  // namespace riffle::store
