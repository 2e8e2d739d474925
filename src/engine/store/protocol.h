// The messages between a store and its clients, without sockets: everything that reads bytes of a
// stranger is here and in session.h, and is fuzzed (fuzz/fuzz_store.cpp).
//
//   message  length (u32, of what follows), body           numbers are little-endian
//   hello    magic (8 bytes), token                        a client's first message
//   command  operation (u8), key, then what it takes       one at a time: the next after the reply
//   reply    status (u8), value?
//   key      length (u16), bytes      value  length (u32), bytes      value?  0, or 1 and a value
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "riffle/error.h"
#include "riffle/store.h"

namespace riffle::store {

// Why a connection is refused: one line, without anything the peer sent but quoted names.
class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr std::string_view magic = "riffle01";
// A compare-and-set carries two values; the rest is small.
inline constexpr std::size_t max_message =
    static_cast<std::size_t>(2 * max_store_value.count + max_store_key.count + 64);
inline constexpr std::size_t max_hello =
    magic.size() + static_cast<std::size_t>(max_store_token.count);

enum class Operation : std::uint8_t {
  set = 1,
  get,
  wait,
  wait_change,
  add,
  compare_and_set,
  remove,
  list,
};
std::string_view name_of(Operation operation);

struct Command {
  Operation operation = Operation::get;
  std::string key = {};                      // a prefix for list, where it may be empty
  std::string value = {};                    // set, compare_and_set
  std::optional<std::string> expected = {};  // wait_change (the known value), compare_and_set
  std::int64_t delta = 0;                    // add
  std::uint32_t timeout_milliseconds = 0;    // wait, wait_change
  bool operator==(const Command&) const = default;
};

enum class Status : std::uint8_t {
  ok = 0,
  missing,       // no such key
  timed_out,     // of a wait
  differs,       // compare-and-set found another value
  not_a_number,  // add to something else, or the sum does not fit
  full,          // the store's capacity, or the message that would answer
  denied,        // wrong token, or no sense; the connection is closed
};

struct Reply {
  Status status = Status::ok;
  std::optional<std::string> value = {};  // text of the reason for denied
  bool operator==(const Reply&) const = default;
};

// A message with its length in front, ready to send.
std::string encode_hello(std::string_view token);
std::string encode(const Command& command);
std::string encode(const Reply& reply);

// From a body; Refusal for anything but exactly one well-formed message within the limits.
std::string_view decode_hello(std::string_view body);  // the token, a view of the body
Command decode_command(std::string_view body);
Reply decode_reply(std::string_view body);

// Why a key or a token is not one; nothing for a good one.
std::optional<std::string> key_problem(std::string_view key);
std::optional<std::string> token_problem(std::string_view token);

// Takes time that depends on the expected length alone.
bool equal_in_constant_time(std::string_view expected, std::string_view given);

// Cuts a stream of bytes into bodies. Memory follows what has arrived, never what a length claims.
class Framer {
 public:
  explicit Framer(std::size_t limit) : limit_(limit) {}
  void set_limit(std::size_t limit) { limit_ = limit; }
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // The next complete body; nothing while it is incomplete. Refusal above the limit.
  std::optional<std::string> next();
  // Bytes of a message that is not complete.
  [[nodiscard]] bool partial() const { return !buffer_.empty(); }

 private:
  std::size_t limit_;
  std::string buffer_;
};

}  // namespace riffle::store
