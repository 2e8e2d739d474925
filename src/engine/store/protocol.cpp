#include "engine/store/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "base/text.h"

namespace riffle::store {

namespace {

class Writer {
 public:
  template <typename T>
  Writer& number(T value) {
    auto bits = static_cast<std::make_unsigned_t<T>>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      text_.push_back(static_cast<char>(bits & 0xff));
      bits = static_cast<std::make_unsigned_t<T>>(bits >> (sizeof(T) > 1 ? 8 : 0));
    }
    return *this;
  }
  Writer& key(std::string_view key) {
    number(static_cast<std::uint16_t>(key.size()));
    text_.append(key);
    return *this;
  }
  Writer& value(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    text_.append(value);
    return *this;
  }
  Writer& optional(const std::optional<std::string>& value) {
    number(static_cast<std::uint8_t>(value.has_value()));
    return value ? this->value(*value) : *this;
  }
  Writer& bytes(std::string_view bytes) {
    text_.append(bytes);
    return *this;
  }
  [[nodiscard]] std::string framed() const {
    Writer frame;
    frame.number(static_cast<std::uint32_t>(text_.size()));
    return frame.text_ + text_;
  }

 private:
  std::string text_;
};

class Reader {
 public:
  explicit Reader(std::string_view body) : rest_(body) {}

  template <typename T>
  T number() {
    const std::string_view bytes = take(sizeof(T));
    std::make_unsigned_t<T> bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      bits = static_cast<std::make_unsigned_t<T>>(
          bits | static_cast<std::make_unsigned_t<T>>(static_cast<unsigned char>(bytes[i]))
                     << (8 * i));
    return static_cast<T>(bits);
  }
  std::string key() { return std::string(take(number<std::uint16_t>())); }
  std::string value(std::size_t limit) {
    const std::size_t size = number<std::uint32_t>();
    if (size > limit) throw Refusal(fmt::format("a value of {} bytes; at most {}", size, limit));
    return std::string(take(size));
  }
  std::optional<std::string> optional(std::size_t limit) {
    const auto present = number<std::uint8_t>();
    if (present > 1) throw Refusal("a malformed message");
    return present == 1 ? std::optional(value(limit)) : std::nullopt;
  }
  void finish() const {
    if (!rest_.empty()) throw Refusal("a malformed message");
  }

 private:
  std::string_view take(std::size_t size) {
    if (size > rest_.size()) throw Refusal("a malformed message");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::string_view rest_;
};

constexpr auto value_limit = static_cast<std::size_t>(max_store_value.count);

bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

std::string_view name_of(Operation operation) {
  switch (operation) {
    case Operation::set:
      return "set";
    case Operation::get:
      return "get";
    case Operation::wait:
      return "wait";
    case Operation::wait_change:
      return "wait_change";
    case Operation::add:
      return "add";
    case Operation::compare_and_set:
      return "compare_and_set";
    case Operation::remove:
      return "remove";
    case Operation::list:
      return "list";
  }
  return "unknown";
}

std::string encode_hello(std::string_view token) {
  return Writer().bytes(magic).bytes(token).framed();
}

std::string encode(const Command& command) {
  Writer writer;
  writer.number(static_cast<std::uint8_t>(command.operation)).key(command.key);
  switch (command.operation) {
    case Operation::set:
      writer.value(command.value);
      break;
    case Operation::wait:
      writer.number(command.timeout_milliseconds);
      break;
    case Operation::wait_change:
      writer.number(command.timeout_milliseconds).optional(command.expected);
      break;
    case Operation::add:
      writer.number(command.delta);
      break;
    case Operation::compare_and_set:
      writer.optional(command.expected).value(command.value);
      break;
    case Operation::get:
    case Operation::remove:
    case Operation::list:
      break;
  }
  return writer.framed();
}

std::string encode(const Reply& reply) {
  return Writer().number(static_cast<std::uint8_t>(reply.status)).optional(reply.value).framed();
}

std::string_view decode_hello(std::string_view body) {
  if (!body.starts_with(magic)) throw Refusal("it does not speak the store's protocol");
  return body.substr(magic.size());
}

Command decode_command(std::string_view body) {
  Reader reader(body);
  Command command;
  const auto code = reader.number<std::uint8_t>();
  command.operation = static_cast<Operation>(code);
  if (name_of(command.operation) == "unknown")
    throw Refusal(fmt::format("an unknown operation {}", code));
  command.key = reader.key();
  switch (command.operation) {
    case Operation::set:
      command.value = reader.value(value_limit);
      break;
    case Operation::wait:
      command.timeout_milliseconds = reader.number<std::uint32_t>();
      break;
    case Operation::wait_change:
      command.timeout_milliseconds = reader.number<std::uint32_t>();
      command.expected = reader.optional(value_limit);
      break;
    case Operation::add:
      command.delta = reader.number<std::int64_t>();
      break;
    case Operation::compare_and_set:
      command.expected = reader.optional(value_limit);
      command.value = reader.value(value_limit);
      break;
    case Operation::get:
    case Operation::remove:
    case Operation::list:
      break;
  }
  reader.finish();
  if (command.operation == Operation::list && command.key.empty()) return command;
  if (const auto problem = key_problem(command.key)) throw Refusal(*problem);
  return command;
}

Reply decode_reply(std::string_view body) {
  Reader reader(body);
  const auto code = reader.number<std::uint8_t>();
  if (code > static_cast<std::uint8_t>(Status::denied)) throw Refusal("a malformed message");
  Reply reply{.status = static_cast<Status>(code), .value = reader.optional(max_message)};
  reader.finish();
  return reply;
}

std::optional<std::string> key_problem(std::string_view key) {
  if (key.empty()) return "an empty key";
  if (key.size() > static_cast<std::size_t>(max_store_key.count))
    return fmt::format("a key of {} bytes; at most {}", key.size(), max_store_key.count);
  if (has_control_characters(key))
    return fmt::format("a key with control characters, {}", quote(key));
  return std::nullopt;
}

std::optional<std::string> token_problem(std::string_view token) {
  if (token.empty()) return "an empty token";
  if (token.size() > static_cast<std::size_t>(max_store_token.count))
    return fmt::format("a token of {} bytes; at most {}", token.size(), max_store_token.count);
  return std::nullopt;
}

bool equal_in_constant_time(std::string_view expected, std::string_view given) {
  // volatile: the compiler may not stop at the first difference.
  volatile unsigned difference = expected.size() == given.size() ? 0 : 1;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const char other = given.empty() ? '\0' : given[i % given.size()];
    difference = difference | static_cast<unsigned char>(expected[i] ^ other);
  }
  return difference == 0;
}

std::optional<std::string> Framer::next() {
  if (buffer_.size() < sizeof(std::uint32_t)) return std::nullopt;
  const std::size_t size = Reader(buffer_).number<std::uint32_t>();
  if (size > limit_) throw Refusal(fmt::format("a message of {} bytes; at most {}", size, limit_));
  if (buffer_.size() - sizeof(std::uint32_t) < size) return std::nullopt;
  std::string body = buffer_.substr(sizeof(std::uint32_t), size);
  buffer_.erase(0, sizeof(std::uint32_t) + size);
  if (buffer_.empty()) buffer_.shrink_to_fit();  // an idle client holds no memory
  return body;
}

}  // namespace riffle::store
