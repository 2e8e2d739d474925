#include "runtime/service.h"

#include <algorithm>
#include <array>

#include "riffle/error.h"

namespace riffle::runtime {
namespace {

constexpr std::uint64_t kServing = 0x7269'6666'6c65'0002;
// Of a message: no other tag of a session has one of these.
constexpr std::uint32_t kMoved = 2;
constexpr std::uint32_t kAnswer = 3;
constexpr std::uint32_t kStop = 4;
// Nobody need ask for as long as everybody computes: then it is waited again.
constexpr Seconds kIdle{60};

std::span<const std::byte> bytes(const TensorView& view) {
  return {view.data, bytes_of(view)};
}
std::span<std::byte> writable_bytes(const TensorView& view) {
  return {view.data, bytes_of(view)};
}

TensorView slice_view(const TensorView& of, int members, int index) {
  const riffle::Slice slice = slice_of(of.count, of.dtype, members, index);
  return part_of(of, slice.begin, slice.count);
}

CommContext context_for(const Exchange& exchange, Step step) {
  return {.group = &exchange.group,
          .operation = name_of(exchange.collective),
          .bucket = exchange.bucket,
          .step = step};
}

}  // namespace

Service::Service(Engine& engine, std::vector<Served> served, std::uint64_t session, Seconds timeout,
                 std::function<void(std::exception_ptr)> fail)
    : engine_(engine),
      memory_(engine),
      served_(std::move(served)),
      channel_(kServing ^ session),
      timeout_(timeout),
      fail_(std::move(fail)) {
  for (const Served& each : served_) open(each);
  stop_ = engine_.receive(engine_.rank(), tag(0, kStop), {});
  thread_ = std::thread([this] { run(); });
}

Service::~Service() {
  Request wake = engine_.send(engine_.rank(), tag(0, kStop), {});
  thread_.join();
  engine_.cancel(wake);
}

Tag Service::tag(std::size_t slice, std::uint32_t round) const {
  return {channel_, static_cast<std::uint32_t>(slice), round};
}

std::size_t Service::number_of(const Exchange& exchange, std::size_t part) const {
  std::size_t number = 0;
  for (const Served& each : served_) {
    if (each.exchange.bucket == exchange.bucket && each.exchange.payload == exchange.payload)
      return number + part;
    number += each.first.size();
  }
  throw InternalError(fmt::format("nobody serves the exchange \"{}\"", print(exchange)));
}

void Service::open(const Served& served) {
  const Group& group = served.exchange.group;
  members_.insert(members_.end(), group.begin(), group.end());
  for (const TensorView& first : served.first) {
    const std::size_t number = slices_.size();
    Slice& slice = slices_.emplace_back(Slice{.clocks = {group.size(), served.exchange.ahead}});
    const TensorView own = slice_view(first, group.size(), group.index_of(engine_.rank()));
    slice.held = own;
    if (own.count == 0) continue;
    slice.memory = memory_.allocate(bytes_of(own));
    slice.held.data = slice.memory.bytes.data();
    memory_.copy(slice.held, own);
    for (const Rank rank : group) {
      Desk& desk = slice.desks.emplace_back(Desk{.rank = rank});
      desk.memory = memory_.allocate(bytes_of(own));
      desk.values = {desk.memory.bytes.data(), own.count, own.dtype};
      listen(number, desk);
    }
  }
}

// ---- the owner's side

void Service::listen(std::size_t slice, Desk& desk) {
  desk.answering = false;
  desk.request = engine_.receive(desk.rank, tag(slice, kMoved), writable_bytes(desk.values));
}

void Service::run() {
  try {
    std::vector<Request> open;
    do {
      open.assign(1, stop_);
      for (const Slice& slice : slices_)
        for (const Desk& desk : slice.desks)
          if (!desk.request.empty()) open.push_back(desk.request);
      try {
        engine_.await_any(open, {.deadline = after(kIdle),
                                 .context = {.operation = name_of(Collective::serve)},
                                 .watch = members_,
                                 .background = true});
      } catch (const CommError& error) {
        if (error.failure() != CommFailure::timed_out) throw;
      }
    } while (!look());
  } catch (const CommError& error) {
    // Of a rank that is gone our own exchanges tell better, with their bucket and step.
    if (error.failure() == CommFailure::mismatch) fail_(std::current_exception());
  } catch (...) {
    fail_(std::current_exception());
  }
  for (Slice& slice : slices_)
    for (Desk& desk : slice.desks)
      if (!desk.request.empty()) engine_.cancel(desk.request);
  if (!stop_.empty()) engine_.cancel(stop_);
}

bool Service::look() {
  for (std::size_t s = 0; s < slices_.size(); ++s)
    for (std::size_t m = 0; m < slices_[s].desks.size(); ++m) {
      Desk& desk = slices_[s].desks[m];
      if (desk.request.empty() || !engine_.test(desk.request)) continue;
      if (desk.answering)
        listen(s, desk);
      else
        came(s, static_cast<int>(m));
    }
  return engine_.test(stop_);
}

// What is added at one time is added in the order of members, and all are answered with the sum.
void Service::came(std::size_t number, int member) {
  const std::scoped_lock lock(mutex_);
  Slice& slice = slices_[number];
  const std::vector<int> answered = slice.clocks.sent(member);
  std::size_t at = 0;
  const Served* served = served_.data();
  for (; number >= at + served->first.size(); ++served) at += served->first.size();
  const bool statistics = served->exchange.payload == Payload::buffers;
  const double share = statistics ? 1.0 / static_cast<double>(slice.desks.size()) : 1;
  if (statistics)
    memory_.combine(slice.held, std::array{slice.held},
                    std::array{1 - share * static_cast<double>(answered.size())});
  for (const int each : answered)
    memory_.combine(slice.held, std::array{slice.held, slice.desks[each].values},
                    std::array{1.0, share});
  for (const int each : answered) {
    Desk& desk = slice.desks[each];
    memory_.copy(desk.values, slice.held);
    desk.answering = true;
    desk.request = engine_.send(desk.rank, tag(number, kAnswer), bytes(desk.values));
  }
}

// ---- the member's side

void Service::exchange(Flight& flight) {
  const Exchange& exchange = flight.exchange;
  const int members = exchange.group.size();
  const int self = exchange.group.index_of(engine_.rank());
  const double share = 1.0 / members;
  std::vector<Request> requests;
  for (std::size_t part = 0; part < flight.data.size(); ++part) {
    const std::size_t number = number_of(exchange, part);
    const TensorView& values = flight.data[part];
    const TensorView& sent = flight.answered[part];  // its memory, until there are new answers
    if (exchange.payload == Payload::buffers)
      memory_.copy(sent, values);
    else
      memory_.combine(sent, std::array{values, sent}, std::array{share, -share});
    // Each begins with another owner.
    for (int i = 1; i <= members; ++i) {
      const int owner = (self + i) % members;
      const Rank rank = exchange.group.ranks()[owner];
      const TensorView from = slice_view(sent, members, owner);
      if (from.count == 0) continue;
      const TensorView to = slice_view(values, members, owner);
      requests.push_back(engine_.receive(rank, tag(number, kAnswer), writable_bytes(to)));
      requests.push_back(engine_.send(rank, tag(number, kMoved), bytes(from)));
    }
  }
  engine_.wait_all(requests, {.deadline = after(timeout_),
                              .context = context_for(exchange, flight.id.step),
                              .watch = exchange.group.ranks(),
                              .background = true});
  for (std::size_t part = 0; part < flight.data.size(); ++part)
    memory_.copy(flight.answered[part], flight.data[part]);
}

void Service::visit(const std::function<void(const Part&)>& visit) const {
  std::size_t number = 0;
  for (const Served& served : served_)
    for (std::size_t part = 0; part < served.first.size(); ++part) {
      const std::scoped_lock lock(mutex_);
      visit({served.exchange, static_cast<int>(part), served.first[part], slices_[number++].held});
    }
}

}  // namespace riffle::runtime
