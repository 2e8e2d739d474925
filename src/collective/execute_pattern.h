// Runs one member's part of a call as the messages of its pattern. Ring, halving-doubling,
// recursive doubling, direct, two-level, broadcasts, barriers and shifts are all patterns, so this
// is the one place that sends, receives and adds.
//
// Order of sums: a member adds what it receives in one round, and its own value, in ascending
// member order; 16-bit values in f32, rounded once per round (partial sums travel in the data's own
// type). Which member adds what in which round is the pattern, so results are the same on all
// members and in every run.
//
// Weights: a member multiplies its vector by weight/max(weights) before the first round (by the
// weight itself for a sum); the last addition multiplies by max(weights)/sum(weights). Equal
// weights thus cost nothing and cannot overflow.
//
// Pace. A member that is ahead must not push a long vector at one that is still busy with another
// call: the two streams would share its link, it would come late to this call, and the next one
// would begin still further apart. So members of a long call tell all whom they will hear from that
// they have begun (the header below says it), and until a member's word is there it gets only as
// much as is on the way when the word comes from a member in step: the latency times the rate, as
// far as the engine knows them, half as much again for a word that comes a little late, and
// Pace::eager bytes at least.
//
// Rounding. Where a call rounds, each block of a message is encoded by itself, and the sender goes
// on with what the receiver will decode, so that all members hold the same; what that takes away
// counts as lost by the sender, shared with those who hold the same sum (Pattern::holders). A block
// whose sum is complete is rounded before it is sent to anybody; encoding it again changes nothing.
//
// Failure. A wait ends when any member of the group has failed. Whoever fails for another reason
// (calls that do not fit, time that is up) tells the members that still wait for it what went
// wrong, so that all of them name the same culprit. docs/collectives.md says what is left in the
// data.
#pragma once

#include <array>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "codec/codec.h"
#include "collective/plan.h"
#include "collective/scratch.h"
#include "collective/transfers.h"

namespace riffle::collective {

// Names the messages of one call; both ends count alike.
struct CallTags {
  std::uint64_t channel = 0;
  std::vector<std::uint32_t> sequence;  // per member: how many calls we shared with it before
};

// How much a call sends at a time.
struct Pace {
  int window = 3;  // segments that run side by side
  // A call of more bytes than this is long; so much at least is sent to a member that is not known
  // to have begun. The same on all members.
  std::size_t eager = std::size_t(-1);
};

// Belongs to the thread that started it. The data must stay valid until it is done, failed or
// destroyed; afterwards nothing touches it any more.
class PatternOperation {
 public:
  // Starts at once.
  PatternOperation(Engine& engine, ScratchPool& pool, Call call, Plan plan, CallTags tags,
                   const Pace& pace, Deadline deadline);
  // Gives the call up when it is not done; members that wait for us are told.
  ~PatternOperation();
  PatternOperation(const PatternOperation&) = delete;
  PatternOperation& operator=(const PatternOperation&) = delete;

  // Moves on without blocking; true when done. CommError when it failed or its time is up, now and
  // at every later call.
  bool test();
  // Blocks until done.
  void wait();

 private:
  struct Incoming {
    int from;
    Range range;
    const std::byte* data;
  };
  // A block that has come rounded, and where it belongs.
  struct Rounded {
    Range range;
    const std::byte* from;
    std::byte* to;
  };
  struct Round {
    int open = 0;  // its messages that are under way
    std::vector<Incoming> to_add;
    std::vector<Rounded> to_decode;
    Scratch scratch;
    Scratch outgoing;  // what is sent rounded
  };
  // A message for a member that has not said that it has begun.
  struct Held {
    Transfers::Note note;
    std::span<const std::byte> bytes;
  };
  struct Segment {
    int index = 0;
    int round = 0;
    int awaited = 0;  // rounds whose receives are posted: up to the present one, or the next
    std::array<Round, 2> rounds{};  // the present one and the next, by parity
    [[nodiscard]] Round& at(int number) { return rounds[static_cast<std::size_t>(number) % 2]; }
  };

  void advance();
  void run(Segment& segment);
  bool next_segment(Segment& segment);
  [[nodiscard]] double weight_before_the_first_round() const;
  void post_round(Segment& segment);
  void post_receives(Segment& segment, int round);
  void post_sends(Segment& segment);
  // The same where what travels is rounded (execute_rounded.cpp).
  void post_rounded_receives(Segment& segment, int round);
  void post_rounded_sends(Segment& segment);
  void decode(Round& round);
  void round_results(const Segment& segment);
  [[nodiscard]] codec::Lost lost_from(const Range& range, int round, double scale) const;
  void announce();
  void send_when_begun(const Transfers::Note& note, std::span<const std::byte> bytes);
  void release(int member);
  void send_handshake(int member);
  void expect_handshake(int member);
  void check_handshake(const Transfers::Note& note);
  void completed(const Transfers::Note& note);
  void add_up(Segment& segment);
  void add_up(std::span<const Incoming> operands, double scale);

  // Runs a step; whatever it throws ends the operation and is kept.
  template <typename Step>
  auto guarded(const Step& step) -> decltype(step());
  // Runs a call of the engine; its errors are thrown on in terms of our call.
  template <typename Step>
  auto from_engine(const Step& step) -> decltype(step());
  void fail(const std::exception_ptr& error);
  [[noreturn]] void explain(const CommError& error);
  [[noreturn]] void throw_named(CommFailure failure, Rank culprit, std::string detail);
  [[noreturn]] void throw_what_it_says(int member);
  void compare(int member, CallHeader theirs);
  void compare_late_handshake(int member);
  void give_up(CommFailure failure, Rank culprit, std::string_view detail) noexcept;
  void tell(int member, std::span<const std::byte> notice, std::vector<Request>& requests);
  void finish(std::vector<Request>& requests, Deadline until);
  [[nodiscard]] std::vector<std::pair<int, Tag>> owed() const;
  void throw_if_late();

  [[nodiscard]] Rank rank_of(int member) const { return call_.group.ranks()[member]; }
  [[nodiscard]] Tag tag_of(int member, int segment, int round) const;
  [[nodiscard]] int round_of(const Tag& tag) const;
  [[nodiscard]] int most_awaited() const;
  [[nodiscard]] std::byte* at(std::size_t element) const;
  [[nodiscard]] Wait how() const;

  Engine* engine_;
  ScratchPool* pool_;
  Call call_;
  CallHeader header_;
  Plan plan_;
  CallTags tags_;
  Deadline deadline_;
  int me_;
  int last_adding_round_;
  double own_weight_ = 1;
  double scale_ = 1;

  int next_ = 0;  // segment to start
  std::vector<Segment> segments_;
  enum class Handshake : std::uint8_t { none, awaited, fits };
  std::vector<char> handshake_sent_;                   // per member: our header is on its way
  std::vector<Handshake> expected_;                    // per member: its header
  std::deque<std::pair<int, CallHeader>> handshakes_;  // by member, in the order awaited
  std::size_t eager_;                                  // of Pace
  std::vector<std::size_t> sent_early_;                // per member: bytes before its header came
  std::vector<Held> held_;
  std::vector<pattern::Message> messages_;  // reused
  std::vector<Range> ranges_;               // reused
  std::exception_ptr error_;
  std::string detail_;  // of the error
  Transfers transfers_;
};

}  // namespace riffle::collective
