// Hosts on one machine, for tests: network namespaces, joined by a bridge (veth) or by a switch of
// our own that delays (TUN). Addresses are 198.18.0.1, 198.18.0.2, ... Nothing has a name outside
// and everything is held by this process's descriptors, so all of it goes with it, however it ends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "riffle/units.h"

namespace riffle::test {

// A network namespace. It exists as long as this object, or a process in it.
class Namespace {
 public:
  Namespace();
  // Brings this thread there for good, with a /sys that shows the interfaces of the namespace.
  void enter() const;
  // Runs a shell command there; throws when it fails.
  void run(const std::string& command) const;
  [[nodiscard]] const std::string& path() const { return path_; }  // for ip's netns

 private:
  Descriptor descriptor_;
  std::string path_;
};

class Hosts {
 public:
  // Why there can be none here; empty when there can.
  static std::string missing();

  // Joined by a bridge; with a delay, by the switch instead, where every packet takes that long.
  explicit Hosts(int count, Seconds one_way = Seconds(0));
  ~Hosts();

  void enter(int host) const { hosts_[static_cast<std::size_t>(host)]->enter(); }
  [[nodiscard]] static std::string address(int host);

  // Faults of the bridge. Nothing reaches the host, nothing leaves it, or both.
  enum class Cut { both, to, from };
  void cut(int host, Cut cut) const;
  void mend(int host) const;  // of Cut::both

 private:
  void join_by_bridge();
  void join_by_switch(Seconds one_way);

  std::vector<std::unique_ptr<Namespace>> hosts_;
  std::unique_ptr<Namespace> bridge_;
  pid_t switch_ = 0;
};

}  // namespace riffle::test
