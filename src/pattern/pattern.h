// Who sends which part of a vector to whom, round by round: the point-to-point shape of a
// collective, as data. The runtime executes it, the timing simulator turns it into flows and the
// cost model counts it, so all three speak of the same messages.
//
// The vector is cut into `blocks()` nearly equal blocks: of E elements, block b holds elements
// b*E/blocks .. (b+1)*E/blocks. A reduce_scatter leaves block i complete at member i; an all_gather
// starts from there; an all_reduce is one after the other, or recursive doubling.
//
// A round's messages leave with the values from before the round. A member begins round r+1 when
// all its messages of round r have arrived; it never waits for members it does not hear from.
//
// serve has the messages of an all_reduce by direct, but rounds are no rounds: an owner answers each
// member by itself.
//
// What a member stores (does not add) in a round is nothing that it receives in the round before,
// nor sends then to anybody but the one that it comes from, who has it by then. So a receive may be
// open for it a round early.
#pragma once

#include <memory>
#include <vector>

#include "riffle/program.h"

namespace riffle::pattern {

struct Message {
  int from = 0;   // member index
  int to = 0;     // member index
  int first = 0;  // first block; blocks count cyclically from there
  int count = 0;
  bool add = false;  // the receiver adds it to what it has; else it stores it
  bool operator==(const Message&) const = default;
};

// Rounds that send the same number of blocks between the same members.
struct RoundClass {
  int round = 0;  // one of them
  int times = 1;
};

class Pattern {
 public:
  virtual ~Pattern() = default;

  [[nodiscard]] int members() const { return members_; }
  [[nodiscard]] int rounds() const { return rounds_; }
  [[nodiscard]] int blocks() const { return blocks_; }

  // Appends what `member` sends or receives in `round`. A receiver adds in the order given here,
  // which is ascending by sender, so that sums are the same from run to run.
  virtual void sends(int member, int round, std::vector<Message>& out) const = 0;
  virtual void receives(int member, int round, std::vector<Message>& out) const = 0;
  // How many members hold the same sum of a block when they begin `round`, and go on with it.
  [[nodiscard]] virtual int holders(int /*round*/) const { return 1; }
  // Together they cover all rounds, in order of their first one.
  [[nodiscard]] virtual std::vector<RoundClass> round_classes() const;
  // Its rounds load different links: segments (pieces.h) that follow each other use them all at a
  // time, where a whole vector would use one after the other.
  [[nodiscard]] virtual bool has_phases() const { return false; }

 protected:
  Pattern(int members, int rounds, int blocks)
      : members_(members), rounds_(rounds), blocks_(blocks) {}

 private:
  int members_;
  int rounds_;
  int blocks_;
};

// The pattern of a collective over n members. `racks` (positions of the members by rack) is needed
// for two_level only. Reduce_scatter and all_gather exist as ring, direct and halving_doubling, the
// last standing in for the other algorithms. A tree has no pattern: UsageError.
std::unique_ptr<Pattern> make_pattern(Algorithm algorithm, Collective collective, int n,
                                      const std::vector<std::vector<int>>& racks = {},
                                      int places = 0);

// The member positions of a group by rack, for two_level.
std::vector<std::vector<int>> rack_positions(const Group& group, const Cluster& cluster);

// Halving skips of the circulant schedule for n members: n, ceil(n/2), ..., 1.
std::vector<int> halving_skips(int n);

}  // namespace riffle::pattern
