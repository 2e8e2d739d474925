// Every call takes a connection of its own for as long as it lasts, so that a wait of one thread
// holds up no other; idle connections are kept for the next call.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>

#include "base/text.h"
#include "engine/store/connection.h"

namespace riffle {

using store::Command;
using store::Connection;
using store::Operation;
using store::Question;
using store::Reply;
using store::Status;

namespace {

constexpr std::size_t max_idle = 4;
// A wait ends when the server says so; the client itself gives up a moment later, so that a server
// that has stopped answering is told from a key that nobody set.
constexpr Seconds answer_grace = milliseconds(200);

std::string explain(CommFailure failure, const StoreAddress& store, const std::string& asked,
                    std::string_view detail) {
  const auto what = [&]() -> std::string_view {
    switch (failure) {
      case CommFailure::absent:
        return "cannot be reached";
      case CommFailure::died:
        return "broke the connection";
      case CommFailure::mismatch:
        return "does not speak the store's protocol";
      default:
        return "did not answer in time";
    }
  }();
  return fmt::format("store {} {} in {}: {}", print(store), what, asked, detail);
}

std::uint32_t to_milliseconds(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(left, 0, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

StoreError::StoreError(CommFailure failure, const StoreAddress& store, const std::string& asked,
                       std::string_view detail)
    : CommError(failure, print(store), asked, explain(failure, store, asked, detail)) {}

class Store::Pool {
 public:
  explicit Pool(StoreOptions options) : options_(std::move(options)) {
    if (const auto problem = store::token_problem(options_.token))
      usage_error("the store at {} needs a token (RIFFLE_TOKEN), not {}", print(options_.address),
                  *problem);
    give_back(Connection(question("connect"), options_.token, after(options_.connect_timeout)));
  }

  [[nodiscard]] const StoreAddress& address() const { return options_.address; }

  Reply call(const Command& command, Deadline deadline) {
    check(command);
    const Question what =
        question(fmt::format("{} {}", name_of(command.operation), quote(command.key)));
    Connection connection = take(what, deadline);
    const bool waits = command.timeout_milliseconds > 0;
    const Deadline answer_by =
        waits ? deadline + std::chrono::duration_cast<Clock::duration>(answer_grace) : deadline;
    Reply reply = connection.call(encode(command), what, answer_by);
    if (reply.status == Status::denied)
      throw StoreError(CommFailure::mismatch, options_.address, what.asked,
                       reply.value.value_or("denied"));
    give_back(std::move(connection));
    if (reply.status == Status::full)
      usage_error("store {} has no room for {}", print(options_.address), what.asked);
    if (reply.status == Status::timed_out)
      throw StoreError(CommFailure::timed_out, options_.address, what.asked,
                       "nobody set it within the time");
    return reply;
  }

 private:
  [[nodiscard]] Question question(std::string asked) const {
    return {options_.address, std::move(asked)};
  }

  static void check(const Command& command) {
    const auto problem = store::key_problem(command.key);
    if (problem && !(command.operation == Operation::list && command.key.empty()))
      usage_error("store: {}", *problem);
    const auto limit = static_cast<std::size_t>(max_store_value.count);
    if (command.value.size() > limit || (command.expected && command.expected->size() > limit))
      usage_error("store: the value of {} has {} bytes; at most {}", quote(command.key),
                  std::max(command.value.size(), command.expected.value_or("").size()), limit);
  }

  Connection take(const Question& what, Deadline deadline) {
    {
      const std::lock_guard lock(mutex_);
      while (!idle_.empty()) {
        Connection connection = std::move(idle_.back());
        idle_.pop_back();
        if (connection.fresh()) return connection;
      }
    }
    return {what, options_.token, deadline};
  }

  void give_back(Connection connection) {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < max_idle) idle_.push_back(std::move(connection));
  }

  const StoreOptions options_;
  std::mutex mutex_;
  std::vector<Connection> idle_;  // guarded by mutex_
};

Store::Store(const StoreOptions& options) : pool_(std::make_unique<Pool>(options)) {}
Store::~Store() = default;

const StoreAddress& Store::address() const {
  return pool_->address();
}

void Store::set(std::string_view key, std::string_view value, Deadline deadline) {
  Command command{.operation = Operation::set, .key = std::string(key)};
  command.value = value;
  pool_->call(command, deadline);
}

std::optional<std::string> Store::get(std::string_view key, Deadline deadline) {
  return pool_->call({.operation = Operation::get, .key = std::string(key)}, deadline).value;
}

std::string Store::wait(std::string_view key, Deadline deadline) {
  Command command{.operation = Operation::wait, .key = std::string(key)};
  command.timeout_milliseconds = to_milliseconds(deadline);
  return pool_->call(command, deadline).value.value_or("");
}

std::optional<std::string> Store::wait_change(std::string_view key,
                                              const std::optional<std::string>& known,
                                              Deadline deadline) {
  Command command{.operation = Operation::wait_change, .key = std::string(key)};
  command.expected = known;
  command.timeout_milliseconds = to_milliseconds(deadline);
  return pool_->call(command, deadline).value;
}

std::int64_t Store::add(std::string_view key, std::int64_t delta, Deadline deadline) {
  Command command{.operation = Operation::add, .key = std::string(key)};
  command.delta = delta;
  const Reply reply = pool_->call(command, deadline);
  if (reply.status == Status::not_a_number)
    usage_error("store: cannot add {} to {}, which is {}", delta, quote(key),
                quote(reply.value.value_or("missing")));
  return parse_integer(reply.value.value_or(""), "the store's sum");
}

Store::Exchanged Store::compare_and_set(std::string_view key,
                                        const std::optional<std::string>& expected,
                                        std::string_view desired, Deadline deadline) {
  Command command{.operation = Operation::compare_and_set, .key = std::string(key)};
  command.expected = expected;
  command.value = desired;
  Reply reply = pool_->call(command, deadline);
  if (reply.status == Status::ok) return {.done = true, .value = std::string(desired)};
  return {.done = false, .value = std::move(reply.value)};
}

bool Store::remove(std::string_view key, Deadline deadline) {
  const Command command{.operation = Operation::remove, .key = std::string(key)};
  return pool_->call(command, deadline).status == Status::ok;
}

std::vector<std::string> Store::list(std::string_view prefix, Deadline deadline) {
  const Command command{.operation = Operation::list, .key = std::string(prefix)};
  const std::string text = pool_->call(command, deadline).value.value_or("");
  std::vector<std::string> keys;
  for (const std::string_view key : split(text, '\n'))
    if (!key.empty()) keys.emplace_back(key);
  return keys;
}

}  // namespace riffle
