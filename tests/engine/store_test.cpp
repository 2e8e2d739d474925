// The store over real sockets: what it does, and whom it refuses while it goes on.
#include "riffle/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <mutex>
#include <thread>

#include "engine/store/protocol.h"
#include "engine/store/socket.h"

namespace riffle {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

const Seconds plenty(30);

// A server whose log can be read.
class StoreTest : public testing::Test {
 protected:
  void start(StoreServerOptions options = {}) {
    options.token = "secret";
    options.log = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      log_.push_back(line);
    };
    server = std::make_unique<StoreServer>(options);
  }
  [[nodiscard]] StoreOptions options() const {
    return {.address = server->address(), .token = "secret", .connect_timeout = plenty};
  }
  [[nodiscard]] Descriptor connect() const {
    std::string problem;
    Descriptor socket = store::connect_to(server->address(), after(plenty), problem);
    EXPECT_TRUE(socket.valid()) << problem;
    return socket;
  }
  std::vector<std::string> log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }
  // The store still answers somebody else.
  void expect_service() {
    Store other(options());
    other.set("service", "on", after(plenty));
    EXPECT_EQ(other.get("service", after(plenty)), "on");
  }

  std::mutex mutex_;
  std::vector<std::string> log_;
  std::unique_ptr<StoreServer> server;
};

void send_text(const Descriptor& socket, std::string_view text) {
  ASSERT_EQ(send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

// Reads until the other side closes; false when it does not.
bool closes(const Descriptor& socket) {
  char bytes[4096];
  const Deadline deadline = after(plenty);
  while (store::wait_for(socket.get(), POLLIN, deadline)) {
    const ssize_t got = recv(socket.get(), bytes, sizeof bytes, 0);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return true;
  }
  return false;
}

template <typename Error, typename Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(StoreTest, SetsGetsAddsComparesListsAndRemoves) {
  start();
  Store store(options());
  const Deadline deadline = after(plenty);
  EXPECT_EQ(store.get("a", deadline), std::nullopt);
  const std::string binary("\0\n\xff", 3);
  store.set("a", binary, deadline);
  EXPECT_EQ(store.get("a", deadline), binary);
  EXPECT_EQ(store.wait("a", deadline), binary);
  EXPECT_EQ(store.add("n", 3, deadline), 3);
  EXPECT_EQ(store.add("n", -5, deadline), -2);
  EXPECT_THROW(store.add("a", 1, deadline), UsageError);
  auto exchanged = store.compare_and_set("epoch", std::nullopt, "1", deadline);
  EXPECT_TRUE(exchanged.done);
  exchanged = store.compare_and_set("epoch", "0", "2", deadline);
  EXPECT_FALSE(exchanged.done);
  EXPECT_EQ(exchanged.value, "1");
  EXPECT_THAT(store.list("", deadline), testing::ElementsAre("a", "epoch", "n"));
  EXPECT_THAT(store.list("e", deadline), testing::ElementsAre("epoch"));
  EXPECT_TRUE(store.remove("epoch", deadline));
  EXPECT_FALSE(store.remove("epoch", deadline));
  const std::string big(1 << 20, 'v');
  store.set("big", big, deadline);
  EXPECT_EQ(store.wait("big", deadline), big);
}

TEST_F(StoreTest, AWaitEndsWhenTheKeyComesOrChangesAndHoldsUpNobody) {
  start();
  Store store(options());
  std::string came;
  std::optional<std::string> gone = "x";
  // One client, two threads that wait, a third that lets them go.
  std::thread first([&] { came = store.wait("a", after(plenty)); });
  std::thread second([&] { gone = store.wait_change("b", "here", after(plenty)); });
  store.set("b", "here", after(plenty));
  store.set("a", "here", after(plenty));
  first.join();
  EXPECT_EQ(came, "here");
  store.remove("b", after(plenty));
  second.join();
  EXPECT_TRUE(gone == std::nullopt) << *gone;
}

TEST_F(StoreTest, AWaitEndsAtItsDeadlineNamingStoreAndKey) {
  start();
  Store store(options());
  const Deadline begin = Clock::now();
  EXPECT_THAT(message_of<StoreError>([&] { store.wait("ranks/3", after(Seconds(0.2))); }),
              AllOf(HasSubstr(print(server->address())), HasSubstr("wait 'ranks/3'"),
                    HasSubstr("nobody set it")));
  EXPECT_GE(Seconds(Clock::now() - begin), Seconds(0.2));
  EXPECT_EQ(store.get("ranks/3", after(plenty)), std::nullopt) << "the client goes on";
  EXPECT_THROW(store.wait("ranks/3", Clock::now()), StoreError);
}

TEST_F(StoreTest, ManyThreadsOfOneClientCountTogether) {
  start();
  Store store(options());
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) store.add("n", 1, after(plenty));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store.get("n", after(plenty)), "800");
}

TEST_F(StoreTest, AVanishedClientLeavesNothingBehind) {
  start();
  {
    const Descriptor socket = connect();
    send_text(socket, store::encode_hello("secret"));
    send_text(socket, encode(store::Command{.operation = store::Operation::wait,
                                            .key = "never",
                                            .timeout_milliseconds = 1'000'000}));
    const Descriptor half = connect();
    send_text(half, store::encode_hello("secret") + std::string("\x10\0\0\0half", 8));
    while (server->clients() < 2) std::this_thread::yield();
  }
  const Deadline deadline = after(plenty);
  while (server->clients() > 0 && Clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(server->clients(), 0);
  EXPECT_TRUE(log().empty()) << "to leave is no offence";
  expect_service();
}

TEST_F(StoreTest, ServesIPv6) {
  try {
    start({.bind = {"::1", 0}});
  } catch (const UsageError& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_EQ(server->address().host, "::1");
  expect_service();
}

TEST_F(StoreTest, BindsToAnInterfaceByName) {
  start({.bind = {"lo", 0}});
  EXPECT_EQ(server->address().host, "127.0.0.1");
  expect_service();
  EXPECT_THAT(
      message_of<UsageError>([&] { StoreServer({.bind = server->address(), .token = "x"}); }),
      AllOf(HasSubstr(print(server->address())), HasSubstr("in use")));
  EXPECT_THROW(StoreServer({.bind = {"no-such-interface.invalid", 0}, .token = "x"}), UsageError);
  EXPECT_THROW(StoreServer({.token = ""}), UsageError);
}

TEST_F(StoreTest, ListensOnItsAddressAlone) {
  start({.bind = {"127.0.0.1", 0}});
  std::string problem;
  EXPECT_FALSE(
      store::connect_to({"127.0.0.2", server->address().port}, after(plenty), problem).valid());
}

TEST_F(StoreTest, AWrongTokenIsRefusedAndLogged) {
  start();
  StoreOptions wrong = options();
  wrong.token = "Secret";
  EXPECT_THAT(message_of<UsageError>([&] { const Store store(wrong); }),
              AllOf(HasSubstr("wrong token"), HasSubstr("RIFFLE_TOKEN")));
  expect_service();
  EXPECT_THAT(log(), testing::ElementsAre(
                         AllOf(HasSubstr("refused 127.0.0.1:"), HasSubstr("a wrong token"))));
}

TEST_F(StoreTest, GarbageIsRefusedAndLogged) {
  start();
  const Descriptor web = connect();
  send_text(web, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(closes(web));
  const Descriptor zeros = connect();
  send_text(zeros, std::string(64, '\0'));
  EXPECT_TRUE(closes(zeros));
  const Descriptor later = connect();
  send_text(later, store::encode_hello("secret") + std::string("\x03\0\0\0xyz", 7));
  EXPECT_TRUE(closes(later));
  expect_service();
  EXPECT_THAT(log(), testing::ElementsAre(HasSubstr("bytes; at most"), HasSubstr("does not speak"),
                                          HasSubstr("unknown operation 120")));
}

TEST_F(StoreTest, OversizedMessagesAreRefusedBeforeTheyArrive) {
  start();
  const Descriptor socket = connect();
  send_text(socket, store::encode_hello("secret") + "\xff\xff\xff\x7f");
  EXPECT_TRUE(closes(socket));
  expect_service();
  EXPECT_THAT(log(), testing::ElementsAre(HasSubstr("a message of 2147483647 bytes")));
  Store store(options());
  EXPECT_THROW(store.set("a", std::string((1 << 20) + 1, 'v'), after(plenty)), UsageError);
  EXPECT_THROW(store.set("", "v", after(plenty)), UsageError);
}

TEST_F(StoreTest, SlowPeersAreDroppedAtEveryStage) {
  start({.message_timeout = Seconds(0.3)});
  const Descriptor silent = connect();
  const Descriptor dripping = connect();
  const Descriptor greeted = connect();
  send_text(greeted, store::encode_hello("secret") + "\x10");
  const Descriptor idle = connect();
  send_text(idle, store::encode_hello("secret"));
  // A byte now and then does not help.
  std::thread drip([&] {
    const std::string hello = store::encode_hello("secret");
    for (const char c : hello) {
      if (send(dripping.get(), &c, 1, MSG_NOSIGNAL) < 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  EXPECT_TRUE(closes(silent));
  EXPECT_TRUE(closes(dripping));
  EXPECT_TRUE(closes(greeted));
  drip.join();
  expect_service();
  EXPECT_THAT(log(), testing::SizeIs(3));
  EXPECT_THAT(log(), testing::Each(HasSubstr("it is too slow")));
  // Who is greeted and asks nothing may stay.
  send_text(idle, encode(store::Command{.operation = store::Operation::get, .key = "a"}));
  char reply[6];
  EXPECT_TRUE(store::wait_for(idle.get(), POLLIN, after(plenty)));
  EXPECT_GT(recv(idle.get(), reply, sizeof reply, 0), 0);
}

TEST_F(StoreTest, APeerThatTakesNoRepliesIsDropped) {
  start({.message_timeout = Seconds(0.3)});
  Store store(options());
  store.set("big", std::string(1 << 20, 'v'), after(plenty));
  const Descriptor deaf = connect();
  const int small = 4096;
  setsockopt(deaf.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  send_text(deaf, store::encode_hello("secret"));
  const std::string get = encode(store::Command{.operation = store::Operation::get, .key = "big"});
  for (int i = 0; i < 20; ++i) send_text(deaf, get);
  const Deadline deadline = after(plenty);
  while (log().empty() && Clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_THAT(log(), testing::ElementsAre(HasSubstr("it is too slow")));
  expect_service();
}

TEST_F(StoreTest, ClientsAboveTheLimitWaitForAPlace) {
  start({.max_clients = 2});
  auto first = std::make_unique<Store>(options());
  auto second = std::make_unique<Store>(options());
  StoreOptions short_of_time = options();
  short_of_time.connect_timeout = Seconds(0.1);
  EXPECT_THAT(message_of<StoreError>([&] { const Store third(short_of_time); }),
              HasSubstr("cannot be reached"));
  std::thread leave([&] { second.reset(); });
  const Store third(options());
  leave.join();
  EXPECT_THAT(log(), Contains(HasSubstr("2 clients are connected")));
}

TEST_F(StoreTest, AStoreThatIsFullSaysSo) {
  start({.capacity = kibibytes(8)});
  Store store(options());
  EXPECT_THAT(
      message_of<UsageError>([&] { store.set("a", std::string(10'000, 'v'), after(plenty)); }),
      HasSubstr("no room for set 'a'"));
  store.set("a", std::string(1000, 'v'), after(plenty));
}

TEST_F(StoreTest, ClientsComeBeforeTheServerAndOutliveIt) {
  start();
  const StoreOptions later = options();
  server.reset();
  StoreOptions hasty = later;
  hasty.connect_timeout = Seconds(0.1);
  EXPECT_THAT(message_of<StoreError>([&] { const Store store(hasty); }),
              AllOf(HasSubstr(print(later.address)), HasSubstr("cannot be reached in connect"),
                    HasSubstr("refused")));
  std::unique_ptr<Store> store;
  std::thread early([&] { store = std::make_unique<Store>(later); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  start({.bind = later.address});
  early.join();
  std::string problem;
  std::thread waiting(
      [&] { problem = message_of<StoreError>([&] { store->wait("never", after(plenty)); }); });
  while (server->clients() == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  server.reset();
  waiting.join();
  EXPECT_THAT(problem, AllOf(HasSubstr("broke the connection in wait 'never'"),
                             HasSubstr(print(later.address))));
  // A store that comes back serves its clients again, empty.
  start({.bind = later.address});
  EXPECT_EQ(store->get("never", after(plenty)), std::nullopt);
}

TEST(StoreClient, AServerThatNeverAnswersEndsAtTheDeadline) {
  const Descriptor listener = store::listen_on({"127.0.0.1", 0});
  EXPECT_THAT(message_of<StoreError>([&] {
                const Store store({.address = store::local_address(listener.get()),
                                   .token = "secret",
                                   .connect_timeout = Seconds(0.2)});
              }),
              HasSubstr("no answer"));
}

TEST(StoreClient, AnotherServiceIsToldFromAStore) {
  const Descriptor listener = store::listen_on({"127.0.0.1", 0});
  std::thread other([&] {
    std::string peer;
    store::wait_for(listener.get(), POLLIN, after(plenty));
    const Descriptor socket = store::accept_from(listener.get(), peer);
    send_text(socket, "SSH-2.0-OpenSSH_9.2\r\n");
    closes(socket);
  });
  EXPECT_THAT(message_of<StoreError>([&] {
                const Store store({.address = store::local_address(listener.get()),
                                   .token = "secret",
                                   .connect_timeout = plenty});
              }),
              HasSubstr("does not speak the store's protocol"));
  other.join();
}

}  // namespace
}  // namespace riffle
