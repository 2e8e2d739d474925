#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "collective/execute_errors.h"
#include "collective/reduce.h"
#include "riffle/error.h"

namespace riffle::collective {
namespace {

std::size_t bytes_of(const Range& range, DType dtype) {
  return range.count * static_cast<std::size_t>(size_of(dtype).count);
}

// What a member's data is multiplied by before anything is added, and the sum after.
struct Scaling {
  double own = 1;
  double sum = 1;
};
Scaling scaling_of(const Call& call, int me) {
  if (!call.adds()) return {};
  const bool mean = call.reduction == Reduction::mean;
  if (call.weights.empty()) return {1, mean ? 1.0 / call.group.size() : 1};
  if (!mean) return {call.weights[me], 1};
  const double largest = *std::ranges::max_element(call.weights);
  const double total = std::accumulate(call.weights.begin(), call.weights.end(), 0.0);
  return {call.weights[me] / largest, largest / total};
}

}  // namespace

PatternOperation::PatternOperation(Engine& engine, ScratchPool& pool, Call call, Plan plan,
                                   CallTags tags, const Pace& pace, Deadline deadline)
    : engine_(&engine),
      pool_(&pool),
      call_(std::move(call)),
      header_(header_of(call_)),
      plan_(std::move(plan)),
      tags_(std::move(tags)),
      deadline_(deadline),
      me_(call_.group.index_of(engine.rank())),
      last_adding_round_(plan_.last_adding_round(me_)),
      handshake_sent_(call_.group.size()),
      expected_(call_.group.size()),
      eager_(pace.eager),
      sent_early_(call_.group.size()),
      transfers_(engine) {
  const auto [own, sum] = scaling_of(call_, me_);
  own_weight_ = own;
  // On the way to a root sums are not yet complete.
  scale_ = call_.operation == Operation::reduce && me_ != call_.root ? 1 : sum;
  segments_.resize(static_cast<std::size_t>(std::min(pace.window, plan_.segments())));
  guarded([&] {
    announce();
    for (Segment& segment : segments_)
      if (next_segment(segment)) run(segment);
  });
}

PatternOperation::~PatternOperation() {
  if (error_ == nullptr && !transfers_.empty())
    give_up(CommFailure::aborted, engine_->rank(), "it has dropped the call");
  for (Segment& segment : segments_)
    for (Round& round : segment.rounds)
      for (Scratch* scratch : {&round.scratch, &round.outgoing})
        if (!scratch->empty()) pool_->give_back(std::move(*scratch));
}

bool PatternOperation::test() {
  return guarded([&] {
    advance();
    if (!transfers_.empty()) throw_if_late();
    return transfers_.empty();
  });
}

void PatternOperation::wait() {
  guarded([&] {
    while (!transfers_.empty()) completed(from_engine([&] { return transfers_.wait(how()); }));
  });
}

// Takes whatever is done.
void PatternOperation::advance() {
  while (const auto note = from_engine([&] { return transfers_.test(); })) completed(*note);
}

// --- segments and rounds
// --------------------------------------------------------------------------

bool PatternOperation::next_segment(Segment& segment) {
  if (next_ == plan_.segments()) return false;
  segment.index = next_++;
  segment.round = 0;
  segment.awaited = 0;
  const double weight = weight_before_the_first_round();
  if (weight != 1)
    for (const Range& range : plan_.ranges_of_segment(segment.index))
      scale_in_place(at(range.begin), weight, range.count, call_.data.dtype);
  return true;
}

double PatternOperation::weight_before_the_first_round() const {
  const bool shift = call_.operation == Operation::shift;
  if (plan_.pattern().rounds() > 0) return shift ? 1 : own_weight_;  // a shift weighs as it adds
  // Alone: the mean is there already; a shift adds one's own value to itself.
  if (call_.reduction == Reduction::mean) return 1;
  return shift ? 2 * own_weight_ : own_weight_;
}

// Posts rounds until there is something to wait for or nothing left to do.
void PatternOperation::run(Segment& segment) {
  for (;;) {
    if (segment.round == plan_.pattern().rounds()) {
      if (!next_segment(segment)) return;
      continue;
    }
    post_round(segment);
    if (segment.at(segment.round).open > 0) return;
    add_up(segment);
    ++segment.round;
  }
}

// Members are seldom in the same round. What comes from one that is ahead would be kept and copied
// once more if its receive were not waiting for it.
void PatternOperation::post_round(Segment& segment) {
  const int next = segment.round + 1;
  if (segment.awaited < next) post_receives(segment, segment.round);
  if (next < plan_.pattern().rounds()) post_receives(segment, next);
  post_sends(segment);
}

void PatternOperation::post_receives(Segment& segment, int number) {
  if (call_.rounds()) return post_rounded_receives(segment, number);
  Round& round = segment.at(number);
  segment.awaited = number + 1;
  round.to_add.clear();
  messages_.clear();
  plan_.pattern().receives(me_, number, messages_);
  std::size_t needed = 0;
  for (const pattern::Message& message : messages_) {
    if (!message.add) continue;
    plan_.ranges_of(message, segment.index, ranges_);
    for (const Range& range : ranges_) needed += bytes_of(range, call_.data.dtype);
  }
  if (needed > 0 && round.scratch.empty()) round.scratch = pool_->take();
  std::byte* scratch = round.scratch.reserve(needed);
  for (const pattern::Message& message : messages_) {
    expect_handshake(message.from);
    plan_.ranges_of(message, segment.index, ranges_);
    for (const Range& range : ranges_) {
      const std::size_t bytes = bytes_of(range, call_.data.dtype);
      std::byte* to = at(range.begin);
      if (message.add) {
        to = std::exchange(scratch, scratch + bytes);
        if (range.count > 0) round.to_add.push_back({message.from, range, to});
      }
      const Tag tag = tag_of(message.from, segment.index, number);
      transfers_.add(engine_->receive(rank_of(message.from), tag, {to, bytes}),
                     {Transfers::Kind::receive, message.from,
                      static_cast<int>(&segment - segments_.data()), tag});
      ++round.open;
    }
  }
}

void PatternOperation::post_sends(Segment& segment) {
  if (call_.rounds()) return post_rounded_sends(segment);
  messages_.clear();
  plan_.pattern().sends(me_, segment.round, messages_);
  for (const pattern::Message& message : messages_) {
    send_handshake(message.to);
    plan_.ranges_of(message, segment.index, ranges_);
    for (const Range& range : ranges_) {
      const Tag tag = tag_of(message.to, segment.index, segment.round);
      ++segment.at(segment.round).open;
      send_when_begun(
          {Transfers::Kind::send, message.to, static_cast<int>(&segment - segments_.data()), tag},
          {at(range.begin), bytes_of(range, call_.data.dtype)});
    }
  }
}

// --- pace ----------------------------------------------------------------------------------------

// Of a long call: tells those whom we exchange anything with that we have begun. They do the same.
void PatternOperation::announce() {
  if (call_.data.count * static_cast<std::size_t>(size_of(call_.data.dtype).count) <= eager_)
    return;
  for (int round = 0; round < plan_.pattern().rounds(); ++round) {
    messages_.clear();
    plan_.pattern().sends(me_, round, messages_);
    plan_.pattern().receives(me_, round, messages_);
    for (const pattern::Message& message : messages_) {
      const int other = message.from == me_ ? message.to : message.from;
      expect_handshake(other);
      send_handshake(other);
    }
  }
}

// What follows a held message waits behind it: two ranges of one message have one tag, and order is
// all that tells them apart.
void PatternOperation::send_when_begun(const Transfers::Note& note,
                                       std::span<const std::byte> bytes) {
  const Rank to = rank_of(note.member);
  if (expected_[note.member] == Handshake::awaited) {
    std::size_t& early = sent_early_[note.member];
    const std::size_t way = engine_->bytes_on_the_way(to);
    const std::size_t most = std::max(eager_, way + way / 2);
    const bool behind = std::ranges::any_of(
        held_, [&](const Held& each) { return each.note.member == note.member; });
    if (behind || (early + bytes.size() > most && !bytes.empty()))
      return held_.push_back({note, bytes});
    early += bytes.size();
  }
  transfers_.add(engine_->send(to, note.tag, bytes), note);
}

// It has begun: what was held for it may go.
void PatternOperation::release(int member) {
  const auto rest = std::ranges::stable_partition(
      held_, [&](const Held& each) { return each.note.member == member; });
  for (auto each = held_.begin(); each != rest.begin(); ++each)
    transfers_.add(engine_->send(rank_of(member), each->note.tag, each->bytes), each->note);
  held_.erase(held_.begin(), rest.begin());
}

void PatternOperation::completed(const Transfers::Note& note) {
  if (note.kind == Transfers::Kind::header_send) return;
  if (note.kind == Transfers::Kind::header_receive) return check_handshake(note);
  Segment& segment = segments_[note.segment];
  const int round = round_of(note.tag);
  if (--segment.at(round).open > 0 || round != segment.round) return;
  add_up(segment);
  ++segment.round;
  run(segment);
}

// --- sums ----------------------------------------------------------------------------------------

void PatternOperation::add_up(Segment& segment) {
  const double scale = segment.round == last_adding_round_ ? scale_ : 1;
  decode(segment.at(segment.round));
  // Operands of one range stand together, in ascending member order.
  auto& all = segment.at(segment.round).to_add;
  std::ranges::sort(all, {}, [](const Incoming& each) {
    return std::tuple(each.range.begin, each.range.count, each.from);
  });
  for (auto first = all.begin(); first != all.end();) {
    const auto last = std::find_if(
        first, all.end(), [&](const Incoming& each) { return each.range != first->range; });
    add_up({first, last}, scale);
    first = last;
  }
  if (call_.rounds() && segment.round == last_adding_round_) round_results(segment);
}

void PatternOperation::add_up(std::span<const Incoming> operands, double scale) {
  const Range range = operands.front().range;
  std::vector<const std::byte*> inputs;
  std::vector<double> weights;
  const bool weigh = call_.operation == Operation::shift && !call_.weights.empty();
  const auto add = [&](int member, const std::byte* data) {
    inputs.push_back(data);
    if (weigh) weights.push_back(call_.weights[member]);
  };
  bool own = false;
  for (const Incoming& operand : operands) {
    if (!own && operand.from > me_) add(me_, at(range.begin)), own = true;
    add(operand.from, operand.data);
  }
  if (!own) add(me_, at(range.begin));
  if (call_.operation == Operation::shift && call_.reduction == Reduction::mean) {
    const double total = weigh ? weights[0] + weights[1] : 2;
    if (total == 0) return;  // nobody's value counts: keep ours
    scale = 1 / total;
  }
  combine_into(at(range.begin), inputs, {call_.reduction, weights, scale}, range.count,
               call_.data.dtype);
}

// --- small things --------------------------------------------------------------------------------

Tag PatternOperation::tag_of(int member, int segment, int round) const {
  return {tags_.channel, tags_.sequence[member],
          static_cast<std::uint32_t>(1 + round * plan_.segments() + segment)};
}

int PatternOperation::round_of(const Tag& tag) const {
  return static_cast<int>(tag.round - 1) / plan_.segments();
}

std::byte* PatternOperation::at(std::size_t element) const {
  return call_.data.data + element * static_cast<std::size_t>(size_of(call_.data.dtype).count);
}

Wait PatternOperation::how() const {
  return {.deadline = deadline_,
          .context = call_.context(),
          .watch = call_.group.ranks(),
          .background = call_.background};
}

}  // namespace riffle::collective
