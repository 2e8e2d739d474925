// Collectives under way: each member walks through its rounds on its own, sends when it begins a
// round and begins the next when every message of the round that it sends or hears has arrived.
// A member that is early is heard later: nobody waits for members that it does not hear from.
//
// A long vector in a pattern with phases travels in segments (pattern/pieces.h), each a collective
// of its own: a member begins the next one when what it sends in the first round of the last one
// has left, so that segments follow each other, and when no more than a window of them is under
// way.
//
// What is served (Collective::serve) has no rounds: a member sends to all owners when it joins,
// each owner answers when what came has arrived and its clocks allow it, whatever it does itself,
// and the member has its result when all answers are there.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "schedule/clocks.h"
#include "simulate/message_plan.h"

namespace riffle::simulator {

class Collectives {
 public:
  // Told when a member has its result.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void member_done(std::int64_t owner, int member, double now) = 0;
  };

  Collectives(Network& network, EventQueue& queue, double gamma, Listener& listener)
      : network_(network), queue_(queue), gamma_(gamma), listener_(listener) {}

  // A collective of `bytes`. `owner` is the listener's.
  int open(std::shared_ptr<const MessagePlan> plan, double bytes, std::int64_t owner);
  // One that has a cost but no messages (a published fit, a tree): it starts when the last member
  // has joined, and takes `seconds`; of those that are `one_at_a_time` the later one waits.
  int open_timed(int members, double seconds, bool one_at_a_time, std::int64_t owner);

  // One that is served. Exchanges of one bucket and payload have one ledger.
  int open_served(const Exchange& exchange, std::shared_ptr<const MessagePlan> plan, double bytes,
                  std::int64_t owner);
  // The same of more members than are worth single messages: each has its result `seconds` after it
  // is answered, whatever others send.
  int open_served(const Exchange& exchange, double seconds, std::int64_t owner);

  void join(int id, int member, double now);

  // What the events of these names call.
  void left(int first_flow, double now);
  void delivered(int first_flow, double now);
  void begin_listed(int first, double now);
  void timed_done(int id, double now);
  // Sends what was put off to be sent together. To be called when everything else that happens at
  // `now` has happened.
  void flush(double now);

 private:
  struct Ledger {                          // of what is served
    std::vector<schedule::Clocks> clocks;  // of each owner; one for all where there are no messages
    std::vector<int> collective;           // that each member is in
  };
  struct Collective {
    std::shared_ptr<const MessagePlan> plan;  // none: timed
    std::int64_t owner = 0;
    double bytes = 0;
    double seconds = 0;
    bool one_at_a_time = false;
    int members = 0;
    int joined = 0;
    int done = 0;
    std::vector<int> round;     // of each member; -1 before it joins
    std::vector<int> sending;   // its messages of this round that have not arrived
    std::vector<int> missing;   // messages still to be heard, by cell of the plan
    std::vector<int> together;  // members of a run that send at this time
    Ledger* ledger = nullptr;   // of what is served
    int whole = -1;             // what it is a segment of
    std::vector<int> parts;     // its segments, where it has some; then of each member:
    std::vector<int> begun;     // segments
    std::vector<int> ended;     // segments
    std::vector<int> leaving;   // first messages of the last one begun that have not left
  };
  struct Postponed {
    int collective = 0;
    int member = 0;
    int round = 0;
  };
  struct Listed {
    int collective = 0;
    int member = 0;
    int next = -1;
  };

  int new_collective();
  Ledger& ledger_of(const Exchange& exchange, int owners);
  void join_served(int id, int member, double now);
  // What `member` sent has come to an owner.
  void sent_to(Ledger& ledger, int owner, int member, double now);
  void answer(int id, int owner, int member, double now);
  void answered(int id, int member, double now);
  int open_one(std::shared_ptr<const MessagePlan> plan, double bytes, std::int64_t owner);
  void begin_segments(int id, int member, double now);
  void segment_left(int id, int member, double now);
  void segment_ended(int id, int member, double now);
  void sends(Collective& collective, int member, int round, int flows);
  void start_timed(int id, double now);
  void begin_round(int id, int member, int round, double now);
  void send_bundle(const Postponed& postponed, int run, double now);
  void send_all(int id, Collective& collective, int member, int round, double now);
  void bundle_delivered(const Cargo& cargo, Collective& collective, double now);
  void heard(int id, Collective& collective, int member, int round, double now);
  void round_done(int id, Collective& collective, int member, double now);
  void begin_later(int id, int member, double time);
  void finish_member(int id, int member, double now);

  Network& network_;
  EventQueue& queue_;
  double gamma_;
  Listener& listener_;
  std::vector<std::unique_ptr<Collective>> collectives_;
  std::vector<int> free_;
  std::map<std::pair<int, Payload>, Ledger> ledgers_;
  std::vector<Postponed> postponed_;
  std::vector<Listed> listed_;
  int free_listed_ = -1;
  double last_time_ = -1;  // members that begin at one time are one event
  int last_tail_ = -1;
  double busy_until_ = 0;
};

}  // namespace riffle::simulator
