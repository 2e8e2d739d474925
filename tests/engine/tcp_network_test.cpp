// What sockets may do to the TCP network beside carrying messages.
#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>

#include "base/descriptor.h"
#include "engine/ipv4.h"
#include "engine/network.h"
#include "engine/tcp/frames.h"

namespace riffle::engine {
namespace {

class Recorder : public Network::Events {
 public:
  bool begin(Rank, const Chunk&, std::size_t) override { return true; }
  std::byte* place(Rank, const Chunk&, std::size_t done) override { return bytes.data() + done; }
  void arrived(Rank from, const Chunk&, std::size_t) override { arrivals.push_back(from); }
  void sent(std::uint64_t) override {}
  void left(Rank, Rank) override {}
  void lost(Rank peer) override { losses.push_back(peer); }

  std::vector<std::byte> bytes = std::vector<std::byte>(64);
  std::vector<Rank> arrivals;
  std::vector<Rank> losses;
};

// Rank 0 of a job, reached by sockets that the test opens itself.
class TcpNetworkTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kSession = 42;

  void open(int size) {
    network_ = make_tcp_network(
        {.self = 0, .size = size, .session = kSession, .interface = "lo", .ip = "127.0.0.1"});
    std::vector<std::string> addresses(static_cast<std::size_t>(size), "127.0.0.1:9");
    addresses.front().clear();
    network_->open(addresses, events_);
  }

  [[nodiscard]] Descriptor connection() const {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in to = ipv4_address(network_->address(), "address");
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    return socket;
  }

  template <typename T>
  static void say(const Descriptor& socket, const T& what) {
    EXPECT_EQ(::send(socket.get(), &what, sizeof what, MSG_NOSIGNAL),
              static_cast<ssize_t>(sizeof what));
  }

  static Hello hello_of(std::uint32_t rank) {
    return {.magic = Hello::expected_magic, .session = kSession, .from = rank, .number = 0};
  }

  // Until nothing has moved for a while.
  void settle() const {
    for (int quiet = 0; quiet < 20; ++quiet) {
      if (network_->progress()) quiet = 0;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  // A child that has inherited all descriptors and does nothing, as long as the object lives.
  class Child {
   public:
    Child() : pid_(fork()) {
      if (pid_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
      }
    }
    ~Child() {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

   private:
    pid_t pid_;
  };

  Recorder events_;
  std::unique_ptr<Network> network_;
};

// epoll tells of a socket until its last copy is closed, and a child has one.
TEST_F(TcpNetworkTest, AConnectionThatIsDroppedStaysDroppedWhileAChildHasItsSocket) {
  open(2);
  const Descriptor stranger = connection();
  const Descriptor peer = connection();
  say(peer, hello_of(1));
  settle();
  const Child child;
  say(stranger, std::array<char, sizeof(Hello)>{"not for you"});
  say(peer, Frame{.kind = FrameKind::chunk, .bytes = 1U << 30, .sequence = 0, .chunk = {}});
  settle();
  EXPECT_THAT(events_.losses, testing::ElementsAre(1));
  say(stranger, 'x');
  say(peer, 'x');
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(network_->progress());  // nothing is left to tell of
}

TEST_F(TcpNetworkTest, PeersOfALargeWorldMayAllConnectBeforeOneSaysWhoItIs) {
  constexpr int kSize = 300;
  open(kSize);
  std::vector<Descriptor> peers;
  for (int rank = 1; rank < kSize; ++rank) peers.push_back(connection());
  settle();
  for (std::uint32_t rank = 1; rank < kSize; ++rank) {
    say(peers[rank - 1], hello_of(rank));
    say(peers[rank - 1], Frame{.kind = FrameKind::chunk, .bytes = 0, .sequence = 0, .chunk = {}});
  }
  settle();
  EXPECT_EQ(events_.arrivals.size(), kSize - 1);
  EXPECT_THAT(events_.losses, testing::IsEmpty());
}

TEST_F(TcpNetworkTest, APeerThatSendsAnUnknownKindOfFrameIsLost) {
  open(2);
  const Descriptor peer = connection();
  say(peer, hello_of(1));
  say(peer, Frame{.kind = static_cast<FrameKind>(7), .bytes = 0, .sequence = 0, .chunk = {}});
  settle();
  EXPECT_THAT(events_.losses, testing::ElementsAre(1));
  EXPECT_THAT(events_.arrivals, testing::IsEmpty());
}

}  // namespace
}  // namespace riffle::engine
