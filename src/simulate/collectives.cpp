#include "simulate/collectives.h"

#include <algorithm>

namespace riffle::simulator {

int Collectives::new_collective() {
  if (!free_.empty()) {
    const int id = free_.back();
    free_.pop_back();
    return id;
  }
  collectives_.push_back(std::make_unique<Collective>());
  return static_cast<int>(collectives_.size()) - 1;
}

int Collectives::open(std::shared_ptr<const MessagePlan> plan, double bytes, std::int64_t owner) {
  const int segments = plan->shape().segments(bytes);
  if (segments == 1) return open_one(std::move(plan), bytes, owner);
  const int members = plan->shape().members();
  const int id = open_timed(members, 0, false, owner);
  Collective& whole = *collectives_[id];
  for (auto* counts : {&whole.begun, &whole.ended, &whole.leaving})
    counts->assign(static_cast<std::size_t>(members), 0);
  for (int i = 0; i < segments; ++i) {
    whole.parts.push_back(open_one(plan, bytes / segments, owner));
    collectives_[whole.parts.back()]->whole = id;
  }
  return id;
}

int Collectives::open_one(std::shared_ptr<const MessagePlan> plan, double bytes,
                          std::int64_t owner) {
  const int id = new_collective();
  Collective& collective = *collectives_[id];
  const Shape& shape = plan->shape();
  collective.members = shape.members();
  collective.round.assign(static_cast<std::size_t>(shape.members()), -1);
  collective.sending.assign(static_cast<std::size_t>(shape.members()), 0);
  collective.missing = shape.expected();
  collective.together.assign(static_cast<std::size_t>(plan->runs()), 0);
  collective.plan = std::move(plan);
  collective.bytes = bytes;
  collective.ledger = nullptr;
  collective.owner = owner;
  collective.joined = collective.done = 0;
  collective.whole = -1;
  collective.parts.clear();
  return id;
}

int Collectives::open_timed(int members, double seconds, bool one_at_a_time, std::int64_t owner) {
  const int id = new_collective();
  Collective& collective = *collectives_[id];
  collective.plan.reset();
  collective.members = members;
  collective.ledger = nullptr;
  collective.seconds = seconds;
  collective.one_at_a_time = one_at_a_time;
  collective.owner = owner;
  collective.joined = collective.done = 0;
  collective.whole = -1;
  collective.parts.clear();
  return id;
}

void Collectives::join(int id, int member, double now) {
  Collective& collective = *collectives_[id];
  ++collective.joined;
  if (collective.ledger != nullptr)
    join_served(id, member, now);
  else if (collective.plan)
    begin_round(id, member, 0, now);
  else if (!collective.parts.empty())
    begin_segments(id, member, now);
  else if (collective.joined == collective.members)
    start_timed(id, now);
}

void Collectives::start_timed(int id, double now) {
  const Collective& collective = *collectives_[id];
  double start = now;
  if (collective.one_at_a_time) {
    start = std::max(now, busy_until_);
    busy_until_ = start + collective.seconds;
  }
  queue_.push(start + collective.seconds, Happening::timed_done, id);
}

void Collectives::timed_done(int id, double now) {
  const int members = collectives_[id]->members;
  for (int member = 0; member < members; ++member) finish_member(id, member, now);
}

void Collectives::finish_member(int id, int member, double now) {
  Collective& collective = *collectives_[id];
  const std::int64_t owner = collective.owner;
  const int whole = collective.whole;
  if (++collective.done == collective.members) {
    collective.plan.reset();
    free_.push_back(id);
  }
  if (whole >= 0) return segment_ended(whole, member, now);
  listener_.member_done(owner, member, now);
}

void Collectives::begin_segments(int id, int member, double now) {
  Collective& whole = *collectives_[id];
  const auto segments = static_cast<int>(whole.parts.size());
  int& begun = whole.begun[member];
  while (begun < segments && begun - whole.ended[member] < pattern::kWindow &&
         whole.leaving[member] == 0)
    begin_round(whole.parts[begun++], member, 0, now);
}

void Collectives::segment_left(int id, int member, double now) {
  if (--collectives_[id]->leaving[member] == 0) begin_segments(id, member, now);
}

void Collectives::segment_ended(int id, int member, double now) {
  Collective& whole = *collectives_[id];
  if (++whole.ended[member] == static_cast<int>(whole.parts.size()))
    finish_member(id, member, now);
  else
    begin_segments(id, member, now);
}

void Collectives::left(int flow, double now) {
  for (; flow >= 0; flow = network_.next(flow)) {
    const Cargo cargo = network_.cargo(flow);
    if (!cargo.told) continue;
    const Collective& part = *collectives_[cargo.collective];
    const int whole = part.whole;
    const int cell = part.plan->shape().cell(cargo.round, cargo.from);
    const int members = cargo.to == kBundle ? part.plan->run(part.plan->bundled(cell)).count : 1;
    for (int i = 0; i < members; ++i) segment_left(whole, cargo.from + i, now);
  }
}

// The member begins to send so many flows.
void Collectives::sends(Collective& collective, int member, int round, int flows) {
  collective.sending[member] = flows;
  if (collective.whole >= 0 && round == 0) collectives_[collective.whole]->leaving[member] = flows;
}

void Collectives::begin_round(int id, int member, int round, double now) {
  Collective& collective = *collectives_[id];
  const Shape& shape = collective.plan->shape();
  if (round == shape.rounds()) return finish_member(id, member, now);
  collective.round[member] = round;
  if (const int run = collective.plan->bundled(shape.cell(round, member)); run >= 0) {
    sends(collective, member, round, 1);
    ++collective.together[run];
    postponed_.push_back({id, member, round});
    return;
  }
  send_all(id, collective, member, round, now);
  if (collective.sending[member] == 0 && collective.missing[shape.cell(round, member)] <= 0)
    round_done(id, collective, member, now);
}

// Runs that are complete, and in one round, go as one; the others one by one.
void Collectives::flush(double now) {
  for (const Postponed& each : postponed_) {
    Collective& collective = *collectives_[each.collective];
    const MessagePlan& plan = *collective.plan;
    const int run = plan.bundled(plan.shape().cell(each.round, each.member));
    if (collective.together[run] == plan.run(run).count) send_bundle(each, run, now);
    if (collective.together[run] > 0)
      send_all(each.collective, collective, each.member, each.round, now);
  }
  for (const Postponed& each : postponed_) {
    Collective& collective = *collectives_[each.collective];
    std::ranges::fill(collective.together, 0);
  }
  postponed_.clear();
}

void Collectives::send_bundle(const Postponed& what, int which, double now) {
  Collective& collective = *collectives_[what.collective];
  const MessagePlan& plan = *collective.plan;
  const MessagePlan::Run& run = plan.run(which);
  const auto first = collective.round.begin() + run.first;
  const bool in_step =
      std::all_of(first, first + run.count, [&](int round) { return round == what.round; });
  const int cell = plan.shape().cell(what.round, run.first);
  const bool sent = in_step && network_.bundle(plan.path(plan.shape().first_send(cell)),
                                               plan.bundle(which, what.round),
                                               plan.shape().share(cell) * collective.bytes,
                                               {what.collective, what.round, run.first, kBundle,
                                                collective.whole >= 0 && what.round == 0},
                                               now);
  collective.together[which] = sent ? 0 : run.count + 1;  // not asked again
}

void Collectives::send_all(int id, Collective& collective, int member, int round, double now) {
  const MessagePlan& plan = *collective.plan;
  const Shape& shape = plan.shape();
  const int cell = shape.cell(round, member);
  const int begin = shape.first_send(cell);
  const int end = shape.first_send(cell + 1);
  const Rank from = plan.rank(member);
  const double bytes = shape.share(cell) * collective.bytes;
  const bool told = collective.whole >= 0 && round == 0;
  if (const int fan = plan.fan(cell); fan >= 0) {
    sends(collective, member, round, 1);
    network_.fan(fan, from, end - begin, bytes, {id, round, member, kFan, told}, now);
    return;
  }
  sends(collective, member, round, end - begin);
  for (int i = begin; i < end; ++i) {
    const int to = shape.receiver(i);
    network_.send(plan.path(i), from, plan.rank(to), bytes, {id, round, member, to, told}, now);
  }
}

void Collectives::delivered(int flow, double now) {
  while (flow >= 0) {
    const Cargo cargo = network_.cargo(flow);
    flow = network_.take(flow);
    Collective& collective = *collectives_[cargo.collective];
    const Shape& shape = collective.plan->shape();
    const int cell = shape.cell(cargo.round, cargo.from);
    if (collective.ledger != nullptr) {
      if (cargo.round == 0)
        sent_to(*collective.ledger, cargo.to, cargo.from, now);
      else
        answered(cargo.collective, cargo.to, now);
      continue;
    }
    if (cargo.to == kBundle) {
      bundle_delivered(cargo, collective, now);
      continue;
    }
    if (cargo.to >= 0) {
      heard(cargo.collective, collective, cargo.to, cargo.round, now);
    } else {
      for (int i = shape.first_send(cell); i < shape.first_send(cell + 1); ++i)
        heard(cargo.collective, collective, shape.receiver(i), cargo.round, now);
    }
    // The sender is still in that round: the collective cannot have ended.
    if (--collective.sending[cargo.from] == 0 && collective.missing[cell] <= 0)
      round_done(cargo.collective, collective, cargo.from, now);
  }
}

void Collectives::bundle_delivered(const Cargo& cargo, Collective& collective, double now) {
  const MessagePlan& plan = *collective.plan;
  const Shape& shape = plan.shape();
  const int cell = shape.cell(cargo.round, cargo.from);
  const int send = shape.first_send(cell);
  const int count = plan.run(plan.bundled(cell)).count;
  for (int i = 0; i < count; ++i) {
    heard(cargo.collective, collective, shape.receiver(send + i), cargo.round, now);
    if (--collective.sending[cargo.from + i] == 0 && collective.missing[cell + i] <= 0)
      round_done(cargo.collective, collective, cargo.from + i, now);
  }
}

// ---- what is served

Collectives::Ledger& Collectives::ledger_of(const Exchange& exchange, int owners) {
  const int members = exchange.group.size();
  Ledger& ledger = ledgers_[{exchange.bucket, exchange.payload}];
  if (ledger.clocks.empty()) {
    ledger.clocks.assign(static_cast<std::size_t>(owners), {members, exchange.ahead});
    ledger.collective.assign(static_cast<std::size_t>(members), -1);
  }
  return ledger;
}

int Collectives::open_served(const Exchange& exchange, std::shared_ptr<const MessagePlan> plan,
                             double bytes, std::int64_t owner) {
  const int id = open_one(std::move(plan), bytes, owner);
  Collective& collective = *collectives_[id];
  collective.ledger = &ledger_of(exchange, collective.members);
  collective.missing.assign(static_cast<std::size_t>(collective.members), 0);
  return id;
}

int Collectives::open_served(const Exchange& exchange, double seconds, std::int64_t owner) {
  const int id = open_timed(exchange.group.size(), seconds, false, owner);
  collectives_[id]->ledger = &ledger_of(exchange, 1);
  return id;
}

void Collectives::join_served(int id, int member, double now) {
  Collective& collective = *collectives_[id];
  Ledger& ledger = *collective.ledger;
  ledger.collective[member] = id;
  if (!collective.plan) return sent_to(ledger, 0, member, now);
  const MessagePlan& plan = *collective.plan;
  const Shape& shape = plan.shape();
  const int cell = shape.cell(0, member);
  collective.missing[member] = collective.members;
  for (int i = shape.first_send(cell); i < shape.first_send(cell + 1); ++i) {
    const int to = shape.receiver(i);
    network_.send(plan.path(i), plan.rank(member), plan.rank(to),
                  shape.share(cell) * collective.bytes, {id, 0, member, to}, now);
  }
  sent_to(ledger, member, member, now);
}

void Collectives::sent_to(Ledger& ledger, int owner, int member, double now) {
  for (const int each : ledger.clocks[owner].sent(member))
    answer(ledger.collective[each], owner, each, now);
}

void Collectives::answer(int id, int owner, int member, double now) {
  const Collective& collective = *collectives_[id];
  if (!collective.plan) return begin_later(id, member, now + collective.seconds);
  if (owner == member) return answered(id, member, now);
  const MessagePlan& plan = *collective.plan;
  const Shape& shape = plan.shape();
  const int cell = shape.cell(1, owner);
  for (int i = shape.first_send(cell); i < shape.first_send(cell + 1); ++i)
    if (shape.receiver(i) == member)
      network_.send(plan.path(i), plan.rank(owner), plan.rank(member),
                    shape.share(cell) * collective.bytes, {id, 1, owner, member}, now);
}

// Owners add while they compute; what that takes is counted where it is waited for.
void Collectives::answered(int id, int member, double now) {
  Collective& collective = *collectives_[id];
  if (--collective.missing[member] > 0) return;
  const double adding = gamma_ * collective.plan->shape().added(0, member) * collective.bytes;
  if (adding > 0)
    begin_later(id, member, now + adding);
  else
    finish_member(id, member, now);
}

// ---- rounds

void Collectives::heard(int id, Collective& collective, int member, int round, double now) {
  const int cell = collective.plan->shape().cell(round, member);
  if (--collective.missing[cell] <= 0 && collective.round[member] == round &&
      collective.sending[member] == 0)
    round_done(id, collective, member, now);
}

void Collectives::round_done(int id, Collective& collective, int member, double now) {
  const Shape& shape = collective.plan->shape();
  const int round = collective.round[member];
  // A repeating plan counts in one cell: what came early counts for the next round.
  if (shape.repeating()) collective.missing[member] += shape.expected()[member];
  const double adding = gamma_ > 0 ? gamma_ * shape.added(round, member) * collective.bytes : 0;
  if (adding > 0)
    begin_later(id, member, now + adding);
  else
    begin_round(id, member, round + 1, now);
}

void Collectives::begin_later(int id, int member, double time) {
  int at = free_listed_;
  if (at >= 0) {
    free_listed_ = listed_[at].next;
  } else {
    at = static_cast<int>(listed_.size());
    listed_.emplace_back();
  }
  listed_[at] = {id, member, -1};
  if (time == last_time_) {
    listed_[last_tail_].next = at;
  } else {
    queue_.push(time, Happening::begin, at);
    last_time_ = time;
  }
  last_tail_ = at;
}

void Collectives::begin_listed(int first, double now) {
  if (now == last_time_) last_time_ = -1;
  while (first >= 0) {
    const Listed listed = listed_[first];
    listed_[first].next = free_listed_;
    free_listed_ = first;
    first = listed.next;
    const Collective& collective = *collectives_[listed.collective];
    if (collective.ledger != nullptr)
      finish_member(listed.collective, listed.member, now);
    else
      begin_round(listed.collective, listed.member, collective.round[listed.member] + 1, now);
  }
}

}  // namespace riffle::simulator
