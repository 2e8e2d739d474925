#include "measure/place.h"

#include <algorithm>
#include <utility>

namespace riffle::measure {
namespace {

constexpr std::chrono::milliseconds kLookAround{20};

}  // namespace

Place::Place(Engine& engine, const collective::Control& control, std::function<void()> look_around)
    : engine_(engine), control_(control), look_around_(std::move(look_around)) {}

void Place::send(Rank to, Tag tag, std::span<const std::byte> bytes) const {
  finish(engine_.send(to, tag, bytes), to);
}

void Place::receive(Rank from, Tag tag, std::span<std::byte> bytes) const {
  finish(engine_.receive(from, tag, bytes), from);
}

void Place::finish(Request request, Rank peer) const {
  const Deadline end = give_up();
  try {
    while (!engine_.test(request)) await({&request, 1}, {&peer, 1}, end, end);
  } catch (...) {
    engine_.cancel(request);
    throw;
  }
}

void Place::await(std::span<const Request> requests, std::span<const Rank> peers, Deadline until,
                  Deadline give_up) const {
  const CommContext context{.group = &control_.ranks, .operation = "measure"};
  try {
    engine_.await_any(requests, {.deadline = std::min({give_up, until, after(kLookAround)}),
                                 .context = context,
                                 .watch = peers});
  } catch (const CommError& error) {
    if (error.failure() != CommFailure::timed_out || Clock::now() >= give_up) throw;
    // A peer may itself wait for one that is gone.
    for (const Rank rank : control_.ranks)
      if (rank != engine_.rank()) throw_if_failed(engine_, rank, context);
    if (look_around_) look_around_();
  }
}

void Place::meet() const {
  control_.collectives.barrier(control_.ranks, control_.options());
}

}  // namespace riffle::measure
