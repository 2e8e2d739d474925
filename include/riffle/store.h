// Where the ranks of a job meet: a small table of keys and values behind TCP, one server per job.
// Ranks exchange addresses and agree on memberships through it; bulk data never goes there.
//
// Every connection must present the job's token first. What the token protects, and what nothing
// here protects, is in docs/security.md; the messages are described in src/engine/store/protocol.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "riffle/comm_error.h"
#include "riffle/engine.h"

namespace riffle {

// Hard limits, checked on both sides. A key is not empty and has no control characters.
inline constexpr Bytes max_store_key{1024};
inline constexpr Bytes max_store_value = mebibytes(1);
inline constexpr Bytes max_store_token{256};

// A host (name, IPv4 or IPv6 address) and a port.
struct StoreAddress {
  std::string host;
  int port = 0;
  bool operator==(const StoreAddress&) const = default;
};
// "node7:29500", "10.0.0.1:29500", "[fe80::1%eth0]:29500"; a UsageError names `what`.
StoreAddress parse_store_address(std::string_view text, std::string_view what);
std::string print(const StoreAddress& address);

// 128 random bits of the kernel as text. The one value of a job that must not be reproducible.
std::string make_token();

struct StoreServerOptions {
  // Where to listen, and nowhere else: an address, a host name of this host, or the name of an
  // interface. Port 0 takes a free one.
  StoreAddress bind{"127.0.0.1", 0};
  // Every connection must know it. Not empty.
  std::string token = {};
  // Further clients are refused. The process's limit of open files is raised to fit, up to its hard
  // limit.
  int max_clients = 4096;
  // All keys and values together; a set beyond it fails.
  Bytes capacity = mebibytes(256);
  // A message, and the token before it, must have arrived this long after its first byte (the
  // token: after the connection), and a reply must have been taken; a slower peer is dropped.
  Seconds message_timeout{10};
  // Takes one line for every refused connection, at most a few per second; called by the server's
  // thread. Standard error when empty.
  std::function<void(const std::string&)> log = {};
};

// Serves from a thread of its own until it goes away.
class StoreServer {
 public:
  // UsageError when the address cannot be listened on or the token is not one.
  explicit StoreServer(const StoreServerOptions& options);
  ~StoreServer();
  // Numeric, with the port that was taken.
  [[nodiscard]] StoreAddress address() const;
  [[nodiscard]] int clients() const;  // connections now

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

// The store failed a call: unreachable (absent), gone in the middle (died), late (timed_out), or
// not a store at all (mismatch). Names the store's address and what was asked.
class StoreError : public CommError {
 public:
  StoreError(CommFailure failure, const StoreAddress& store, const std::string& asked,
             std::string_view detail);
};

struct StoreOptions {
  StoreAddress address = {};
  std::string token = {};
  // The server may start later than its clients: they try again until this has passed.
  Seconds connect_timeout{60};
};

// A client. All functions may be called from any thread, by several at once; a thread that waits
// holds up no other. After an error the client is usable: the next call connects anew, and tries
// to until its deadline. A call whose connection broke may or may not have taken effect.
class Store {
 public:
  // Returns when the server has accepted the token; UsageError when it refuses it.
  explicit Store(const StoreOptions& options);
  ~Store();

  void set(std::string_view key, std::string_view value, Deadline deadline);
  // The value now; nothing where there is none.
  std::optional<std::string> get(std::string_view key, Deadline deadline);
  // The value, as soon as there is one; StoreError (timed_out) where there is none in time.
  std::string wait(std::string_view key, Deadline deadline);
  // The value as soon as it is another than `known` (nothing: the key does not exist), which may
  // be at once.
  std::optional<std::string> wait_change(std::string_view key,
                                         const std::optional<std::string>& known,
                                         Deadline deadline);
  // Adds to the number (a missing key is 0) and returns the sum. UsageError when the value is not a
  // number, or the sum does not fit.
  std::int64_t add(std::string_view key, std::int64_t delta, Deadline deadline);

  struct Exchanged {
    bool done = false;
    std::optional<std::string> value;  // what the key has after the call
  };
  // Sets `desired` if the value is `expected` (nothing: if the key does not exist).
  Exchanged compare_and_set(std::string_view key, const std::optional<std::string>& expected,
                            std::string_view desired, Deadline deadline);
  // Whether there was one.
  bool remove(std::string_view key, Deadline deadline);
  // The keys that begin with `prefix`, in order. UsageError when their names exceed a message.
  std::vector<std::string> list(std::string_view prefix, Deadline deadline);

  [[nodiscard]] const StoreAddress& address() const;

 private:
  class Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace riffle
