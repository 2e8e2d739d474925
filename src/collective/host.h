// Collectives of members on one host, through the memory they share.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "collective/call.h"
#include "collective/host_lane.h"

namespace riffle::collective {

class HostCollectives {
 public:
  explicit HostCollectives(Engine& engine);

  // Whether all members are on this host and can share memory.
  [[nodiscard]] bool covers(const Group& group) const;
  // Runs a valid call of a group of two or more that is covered. Small ones are one-shot; larger
  // ones are zero-copy when every member's data is in a buffer of its engine, else staged.
  void run(const Call& call, Deadline deadline);

 private:
  struct Lane {
    std::atomic<bool> busy = false;
    std::unique_ptr<HostLane> state;
  };

  Engine& engine_;
  std::array<Lane, lane_count> lanes_;
};

// The algorithms; each runs one call to its end.

// Everyone writes its data to a slot, posts it, and takes what it needs from all slots: one
// meeting. n*M bytes read by each, M at most 8 KiB.
void one_shot(HostCall& host);
// After the first posts are collected: everyone works on its slice in all buffers, in place, and
// says so: two meetings, no copy.
void zero_copy(HostCall& host);
// After the first posts are collected: chunks of up to 256 KiB go through rings of four. Copying
// in, adding and copying out overlap; members follow each other's counters, there is no meeting.
void staged(HostCall& host);

// What a call multiplies the (weighted) sum with.
double scale_of(const Call& call);
// The same for the two operands of a shift.
struct ShiftShares {
  double own = 1;
  double theirs = 1;
  double scale = 1;
};
ShiftShares shares_of(const Call& call, int self, int from);
// The member that is `places` places on, around the group.
int shift_target(int member, int places, int members);

}  // namespace riffle::collective
