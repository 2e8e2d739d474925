// What the store holds, and what each command does to it. No clock, no socket, no thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "engine/store/protocol.h"

namespace riffle::store {

class Table {
 public:
  explicit Table(Bytes capacity) : capacity_(static_cast<std::size_t>(capacity.count)) {}

  // The reply; nothing for a wait that must go on: apply it again when its key has changed.
  std::optional<Reply> apply(const Command& command);

  // Keys, values and what they cost to keep.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  using Entries = std::map<std::string, std::string, std::less<>>;

  [[nodiscard]] Reply get(const std::string& key) const;
  Reply put(const std::string& key, std::string value);
  Reply add(const std::string& key, std::int64_t delta);
  Reply compare_and_set(const Command& command);
  Reply remove(const std::string& key);
  [[nodiscard]] Reply list(const std::string& prefix) const;

  std::size_t capacity_;
  std::size_t bytes_ = 0;
  Entries entries_;
};

// Whether a reply of this command means that its key has another value now.
bool changes(const Command& command, const Reply& reply);

}  // namespace riffle::store
