#include "lab/lab.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "lab/ping.h"
#include "model/slowed_down.h"

namespace riffle::lab {

namespace {

// Later than any lab ends, and a number of nanoseconds that there is.
constexpr Seconds at_most{1e9};

}  // namespace

Lab::Lab(const LabOptions& options)
    : options_(options),
      cluster_(model::slowed_down(options.cluster, options.dilate, options.shrink)),
      wiring_(wired()),
      hosts_(wiring_),
      switch_(std::make_unique<Switch>(wiring_, hosts_.devices(), options.seed)) {
  hosts_.close_devices();
  if (options_.calibrate && wiring_.hosts > 1) calibrate();
}

Wiring Lab::wired() const {
  std::vector<Change> changes;
  for (const Change& change : options_.events) changes.push_back(slowed(change));
  Wiring wiring = wire(cluster_, options_.dilate);
  make_room(wiring, cluster_, options_.dilate, changes);
  return wiring;
}

Change Lab::slowed(Change change) const {
  const double rate = options_.dilate * options_.shrink;
  change.at *= options_.dilate;
  if (change.latency) *change.latency *= options_.dilate;
  if (change.jitter) *change.jitter *= options_.dilate;
  if (change.bandwidth) change.bandwidth->bytes_per_second /= rate;
  if (change.load) change.load->bytes_per_second /= rate;
  return change;
}

void Lab::start_clock() {
  start_ = clock_now();
  for (const Change& given : options_.events) {
    const Change slow = slowed(given);
    const Nanoseconds after = std::llround(std::min(slow.at, at_most).count() * 1e9);
    for (PortChange each : port_changes(slow, cluster_, wiring_)) {
      each.at = start_ + after;
      switch_->tell(each);
    }
  }
}

void Lab::change(const Change& change) const {
  for (const PortChange& each : port_changes(slowed(change), cluster_, wiring_))
    switch_->tell(each);
}

void Lab::cut_to(int host) const {
  switch_->tell({.what = PortChange::cut, .port = 2 * host + 1});
}

void Lab::cut_from(int host) const {
  switch_->tell({.what = PortChange::cut, .port = 2 * host});
}

// For a moment the first two hosts are half a millisecond apart, whatever the cluster says.
void Lab::calibrate() {
  constexpr Nanoseconds apart = 500'000;
  constexpr int pings = 30;
  constexpr double most_bias = 60e3;
  const auto set = [&](int from, int to, bool back) {
    const auto& path = wiring_.path(from, to);
    for (const int port : path) {
      const Nanoseconds true_latency = wiring_.ports[static_cast<std::size_t>(port)].latency;
      switch_->tell({.what = PortChange::latency,
                     .port = port,
                     .value = static_cast<double>(
                         back ? true_latency : apart / static_cast<Nanoseconds>(path.size()))});
    }
  };
  set(0, 1, false);
  set(1, 0, false);
  hosts_.enter_network(0);
  const std::vector<Seconds> times = ping(1, pings, 0, milliseconds(200));
  hosts_.leave_network();
  set(0, 1, true);
  set(1, 0, true);
  if (times.empty()) return;
  // What it takes at its best; a machine that is busy just now adds to the rest.
  const double best = std::ranges::min(times).count() * 1e9 / 2;
  bias_ = std::llround(std::clamp(best - static_cast<double>(apart), 0.0, most_bias));
  switch_->tell({.what = PortChange::bias, .value = static_cast<double>(bias_)});
}

}  // namespace riffle::lab
