// The store without sockets: messages, the table, one client's session.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/store/refusals.h"
#include "engine/store/session.h"
#include "riffle/random.h"

namespace riffle::store {
namespace {

const std::vector<Command> commands = {
    {.operation = Operation::set, .key = "a", .value = std::string("\0\n\xff", 3)},
    {.operation = Operation::get, .key = "a/b c"},
    {.operation = Operation::wait, .key = "a", .timeout_milliseconds = 4'000'000'000},
    {.operation = Operation::wait_change, .key = "a", .expected = "", .timeout_milliseconds = 1},
    {.operation = Operation::wait_change, .key = "a"},
    {.operation = Operation::add, .key = "n", .delta = INT64_MIN},
    {.operation = Operation::compare_and_set, .key = "a", .value = "y", .expected = "x"},
    {.operation = Operation::compare_and_set, .key = "a", .value = "y"},
    {.operation = Operation::remove, .key = std::string(1024, 'k')},
    {.operation = Operation::list},
};

std::string body_of(const std::string& message) {
  Framer framer(max_message);
  framer.feed(message);
  return framer.next().value();
}

std::string refusal_of(std::string_view body) {
  try {
    decode_command(body);
    return "accepted";
  } catch (const Refusal& refusal) {
    return refusal.what();
  }
}

TEST(StoreProtocol, CommandsAndRepliesComeBackAsTheyWere) {
  for (const Command& command : commands)
    EXPECT_EQ(decode_command(body_of(encode(command))), command) << name_of(command.operation);
  for (const Reply& reply : {Reply{}, Reply{.status = Status::differs, .value = "x"}})
    EXPECT_EQ(decode_reply(body_of(encode(reply))), reply);
}

TEST(StoreProtocol, EveryPrefixAndEveryLongerTextOfACommandIsRefused) {
  for (const Command& command : commands) {
    const std::string body = body_of(encode(command));
    for (std::size_t size = 0; size < std::min<std::size_t>(body.size(), 40); ++size)
      EXPECT_NE(refusal_of(body.substr(0, size)), "accepted");
    EXPECT_EQ(refusal_of(body + "x"), "a malformed message");
  }
}

TEST(StoreProtocol, LimitsAreSaid) {
  const auto set = [](std::string key, std::size_t bytes) {
    return refusal_of(body_of(encode(Command{
        .operation = Operation::set, .key = std::move(key), .value = std::string(bytes, 'v')})));
  };
  EXPECT_EQ(set("a", 1 << 20), "accepted");
  EXPECT_EQ(set("a", (1 << 20) + 1), "a value of 1048577 bytes; at most 1048576");
  EXPECT_EQ(set("", 1), "an empty key");
  EXPECT_EQ(set(std::string(1025, 'k'), 1), "a key of 1025 bytes; at most 1024");
  EXPECT_EQ(set("a\nb", 1), "a key with control characters, 'a?b'");
  EXPECT_EQ(refusal_of("\x63"), "an unknown operation 99");
}

TEST(StoreProtocol, FramerCutsAStreamWhereverItIsBroken) {
  std::string stream;
  for (const Command& command : commands) stream += encode(command);
  Random random(7);
  for (int round = 0; round < 50; ++round) {
    Framer framer(max_message);
    std::vector<Command> seen;
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t size = 1 + random.below(stream.size() / 4);
      framer.feed(std::string_view(stream).substr(at, size));
      at += size;
      while (const auto body = framer.next()) seen.push_back(decode_command(*body));
    }
    EXPECT_EQ(seen, commands);
    EXPECT_FALSE(framer.partial());
  }
}

TEST(StoreProtocol, FramerRefusesByLengthAlone) {
  Framer framer(100);
  framer.feed("GET / HTTP/1.1\r\n");
  EXPECT_THROW(framer.next(), Refusal);
}

TEST(StoreProtocol, TokensAreEqualOrNot) {
  EXPECT_TRUE(equal_in_constant_time("secret", "secret"));
  for (const char* other : {"", "s", "secre", "secreT", "secretsecret", "Secret"})
    EXPECT_FALSE(equal_in_constant_time("secret", other)) << other;
  EXPECT_NE(make_token(), make_token());
  EXPECT_EQ(make_token().size(), 32U);
}

TEST(StoreTable, DoesWhatEachOperationSays) {
  Table table(mebibytes(1));
  const auto reply = [&](const Command& command) { return table.apply(command).value(); };
  EXPECT_EQ(reply({.operation = Operation::get, .key = "a"}).status, Status::missing);
  EXPECT_FALSE(table.apply({.operation = Operation::wait, .key = "a"}));
  EXPECT_EQ(reply({.operation = Operation::add, .key = "a", .delta = 5}).value, "5");
  EXPECT_EQ(reply({.operation = Operation::add, .key = "a", .delta = -7}).value, "-2");
  EXPECT_EQ(reply({.operation = Operation::wait, .key = "a"}).value, "-2");
  EXPECT_FALSE(table.apply({.operation = Operation::wait_change, .key = "a", .expected = "-2"}));
  EXPECT_EQ(reply({.operation = Operation::wait_change, .key = "a", .expected = "0"}).value, "-2");
  EXPECT_EQ(reply({.operation = Operation::compare_and_set, .key = "a", .value = "x"}),
            (Reply{.status = Status::differs, .value = "-2"}));
  EXPECT_EQ(
      reply({.operation = Operation::compare_and_set, .key = "a", .value = "x", .expected = "-2"}),
      Reply{});
  EXPECT_EQ(reply({.operation = Operation::add, .key = "a"}),
            (Reply{.status = Status::not_a_number, .value = "x"}));
  EXPECT_EQ(reply({.operation = Operation::set, .key = "b/1", .value = ""}), Reply{});
  EXPECT_EQ(reply({.operation = Operation::set, .key = "b/0", .value = ""}), Reply{});
  EXPECT_EQ(reply({.operation = Operation::list, .key = "b/"}).value, "b/0\nb/1\n");
  EXPECT_EQ(reply({.operation = Operation::remove, .key = "b/0"}).status, Status::ok);
  EXPECT_EQ(reply({.operation = Operation::remove, .key = "b/0"}).status, Status::missing);
  EXPECT_EQ(reply({.operation = Operation::list}).value, "a\nb/1\n");
  EXPECT_EQ(reply({.operation = Operation::wait_change, .key = "c", .expected = "0"}).value,
            std::nullopt);
}

TEST(StoreTable, SumsThatDoNotFitAndSetsBeyondCapacityChangeNothing) {
  Table table(kibibytes(1));
  EXPECT_EQ(table.apply({.operation = Operation::add, .key = "n", .delta = INT64_MAX})->status,
            Status::ok);
  EXPECT_EQ(table.apply({.operation = Operation::add, .key = "n", .delta = 1})->status,
            Status::not_a_number);
  const std::size_t before = table.bytes();
  const std::string big(1024, 'v');
  EXPECT_EQ(table.apply({.operation = Operation::set, .key = "n", .value = big})->status,
            Status::full);
  EXPECT_EQ(table.bytes(), before);
  EXPECT_EQ(table.apply({.operation = Operation::get, .key = "n"})->value,
            std::to_string(INT64_MAX));
  table.apply({.operation = Operation::remove, .key = "n"});
  EXPECT_EQ(table.bytes(), 0U);
}

class StoreSession : public testing::Test {
 protected:
  std::vector<Reply> replies() {
    std::vector<Reply> all;
    Framer framer(max_message);
    framer.feed(session.output());
    session.sent(session.output().size());
    while (const auto body = framer.next()) all.push_back(decode_reply(*body));
    return all;
  }
  Table table{mebibytes(1)};
  std::string token = "secret";
  Session session{table, token};
  std::optional<std::string> changed;
};

TEST_F(StoreSession, NothingIsDoneBeforeTheToken) {
  session.receive(encode(Command{.operation = Operation::set, .key = "a", .value = "x"}));
  EXPECT_THROW(session.advance(changed), Refusal);
  EXPECT_THAT(replies(), testing::ElementsAre(testing::Field(&Reply::status, Status::denied)));
  EXPECT_EQ(table.bytes(), 0U);
}

TEST_F(StoreSession, AWrongTokenIsRefusedAndALongOneUnread) {
  session.receive(encode_hello("secreT"));
  EXPECT_THROW(session.advance(changed), Refusal);
  Session other(table, token);
  other.receive(encode_hello(std::string(1000, 's')).substr(0, 4));
  EXPECT_THROW(other.advance(changed), Refusal);
}

TEST_F(StoreSession, AWaitHoldsBackWhatComesAfterIt) {
  session.receive(encode_hello(token));
  session.receive(
      encode(Command{.operation = Operation::wait, .key = "a", .timeout_milliseconds = 10}));
  session.receive(encode(Command{.operation = Operation::add, .key = "n", .delta = 1}));
  EXPECT_TRUE(session.advance(changed));
  EXPECT_FALSE(session.advance(changed)) << "before its reply is taken";
  replies();
  EXPECT_TRUE(session.advance(changed));
  EXPECT_FALSE(session.advance(changed));
  session.key_changed();
  EXPECT_TRUE(session.waiting());
  session.give_up();
  EXPECT_THAT(replies(), testing::ElementsAre(testing::Field(&Reply::status, Status::timed_out)));
  EXPECT_TRUE(session.advance(changed));
  EXPECT_EQ(changed, "n");
}

TEST(StoreRefusals, AFloodIsCountedInsteadOfLogged) {
  std::vector<std::string> lines;
  Refusals refusals([&](const std::string& line) { lines.push_back(line); });
  const Deadline now = Clock::now();
  for (int i = 0; i < 1000; ++i) refusals.report("refused", now);
  EXPECT_EQ(lines.size(), 10U);
  refusals.report("refused", now + std::chrono::seconds(2));
  EXPECT_EQ(lines.back(), "refused (990 more like it not shown)");
}

TEST(StoreAddress, IsReadAndPrinted) {
  for (const char* text : {"node7:29500", "10.0.0.1:1", "[::1]:65535", "[fe80::1%eth0]:29500"})
    EXPECT_EQ(print(parse_store_address(text, "store")), text);
  const auto problem = [](const char* text) -> std::string {
    try {
      parse_store_address(text, "RIFFLE_STORE");
      return "none";
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  EXPECT_THAT(problem("::1:29500"), testing::HasSubstr("brackets"));
  for (const char* text : {"", "node7", ":29500", "node7:", "node7:x", "node7:0", "node7:65536"})
    EXPECT_THAT(problem(text), testing::HasSubstr("RIFFLE_STORE")) << text;
}

}  // namespace
}  // namespace riffle::store
