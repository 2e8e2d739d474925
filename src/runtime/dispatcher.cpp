#include "runtime/dispatcher.h"

#include <algorithm>

#include "riffle/error.h"

namespace riffle::runtime {
namespace {

// How long a wait sleeps before it looks whether everybody is still there.
constexpr std::chrono::milliseconds kLookAround{20};
// How long the end of a session waits for exchanges that are under way; and for the first moment
// also where a peer has ended: it may have taken part before.
constexpr Seconds kGrace{10};
constexpr Seconds kMoment{1};

CommContext context_of(const Flight& flight) {
  return {.group = &flight.exchange.group,
          .operation = name_of(flight.exchange.collective),
          .bucket = flight.exchange.bucket,
          .step = flight.id.step};
}

}  // namespace

Dispatcher::Dispatcher(Engine& engine, std::function<void(Flight&)> run, Seconds timeout,
                       PeerMonitor& monitor, Recorder& recorder)
    : engine_(engine),
      run_(std::move(run)),
      timeout_(timeout),
      monitor_(monitor),
      recorder_(recorder) {}

Dispatcher::~Dispatcher() {
  drain();
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    for (auto& [number, lane] : lanes_) lane.wake.notify_all();
    if (error_) give_up();
  }
  for (auto& [number, lane] : lanes_) lane.thread.join();
}

void Dispatcher::drain() {
  std::unique_lock lock(mutex_);
  const auto idle = [&] {
    return std::ranges::all_of(lanes_, [](const auto& each) {
      return each.second.running == nullptr && !may_run(each.second);
    });
  };
  const Deadline moment = after(kMoment);
  const Deadline deadline = after(kGrace);
  while (!error_ && !idle() && Clock::now() < deadline) {
    done_.wait_for(lock, kLookAround);
    if (Clock::now() > moment) look_at_running(lock);
  }
  if (error_ || idle()) return;
  error_ = std::make_exception_ptr(InternalError("the session has ended"));
  for (auto& [number, lane] : lanes_) lane.wake.notify_all();
}

// Whether those that the lanes wait for are still there.
void Dispatcher::look_at_running(std::unique_lock<std::mutex>& lock) {
  std::vector<FlightPtr> running;
  for (auto& [number, lane] : lanes_)
    if (lane.running) running.push_back(lane.running);
  lock.unlock();
  for (const FlightPtr& flight : running) {
    try {
      monitor_.check(context_of(*flight));
    } catch (const CommError&) {
      fail(std::current_exception());
    }
  }
  lock.lock();
}

// Ends the waits of calls that will never be answered: their members count as failed from now on.
void Dispatcher::give_up() {
  for (auto& [number, lane] : lanes_) {
    if (lane.running == nullptr) continue;
    for (const Rank rank : lane.running->exchange.group)
      if (rank != engine_.rank() && !engine_.failure(rank))
        engine_.mark_failed(rank, CommFailure::aborted);
  }
}

void Dispatcher::plan(FlightPtr flight) {
  const std::scoped_lock lock(mutex_);
  Lane& lane = lanes_[flight->exchange.lane];
  if (!lane.thread.joinable()) lane.thread = std::thread([this, &lane] { run(lane); });
  lane.queue.push_back(std::move(flight));
}

void Dispatcher::start(Flight& flight) {
  const std::scoped_lock lock(mutex_);
  flight.stage = Flight::Stage::started;
  lanes_.at(flight.exchange.lane).wake.notify_all();
}

bool Dispatcher::may_run(const Lane& lane) {
  if (lane.queue.empty() || lane.queue.front()->stage != Flight::Stage::started) return false;
  return std::ranges::all_of(lane.queue.front()->awaited, [](const FlightPtr& earlier) {
    return earlier->stage == Flight::Stage::done;
  });
}

void Dispatcher::run(Lane& lane) {
  std::unique_lock lock(mutex_);
  while (true) {
    lane.wake.wait(lock, [&] { return stopping_ || error_ || may_run(lane); });
    if (error_ || !may_run(lane)) break;
    lane.running = std::move(lane.queue.front());
    lane.queue.pop_front();
    lock.unlock();
    std::exception_ptr error;
    const auto start = Recorder::now();
    try {
      run_(*lane.running);
      recorder_.exchange(lane.running->exchange, lane.running->id.step, lane.running->sent, start);
    } catch (const CommError& caught) {
      error = std::make_exception_ptr(monitor_.first_cause(caught));
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    if (!error) lane.running->stage = Flight::Stage::done;
    lane.running.reset();
    done_.notify_all();
    for (auto& [number, other] : lanes_)
      if (error || may_run(other)) other.wake.notify_all();
  }
}

void Dispatcher::fail(std::exception_ptr error) {
  const std::scoped_lock lock(mutex_);
  if (!error_) error_ = std::move(error);
  done_.notify_all();
  for (auto& [number, lane] : lanes_) lane.wake.notify_all();
}

void Dispatcher::wait(Flight& flight) {
  if (flight.stage == Flight::Stage::done) return throw_if_failed();
  const auto begin = Recorder::now();
  const Deadline deadline = after(timeout_);
  std::unique_lock lock(mutex_);
  while (!error_ && flight.stage != Flight::Stage::done) {
    if (done_.wait_for(lock, kLookAround) == std::cv_status::no_timeout) continue;
    if (error_ || flight.stage == Flight::Stage::done) break;
    lock.unlock();
    try {
      monitor_.check(context_of(flight));
      if (Clock::now() > deadline)
        throw CommError(CommFailure::timed_out, -1, "", context_of(flight),
                        fmt::format("no end within {}", print(timeout_)));
    } catch (const CommError&) {
      fail(std::current_exception());
    }
    lock.lock();
  }
  if (error_) std::rethrow_exception(error_);
  lock.unlock();
  recorder_.wait(flight.exchange, flight.id.step, begin);
}

void Dispatcher::throw_if_failed() {
  const std::scoped_lock lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

Ending Dispatcher::ending(Step steps) {
  const std::scoped_lock lock(mutex_);
  Ending ending{.steps = steps};
  if (!error_) return ending;
  try {
    std::rethrow_exception(error_);
  } catch (const CommError& error) {
    ending.culprit = error.rank();
    ending.failure = error.failure();
  } catch (const std::exception&) {
    // A fault of our own: this rank is the one to look at.
  }
  return ending;
}

void Dispatcher::forget_planned() {
  const std::scoped_lock lock(mutex_);
  for (auto& [number, lane] : lanes_)
    std::erase_if(lane.queue,
                  [](const FlightPtr& each) { return each->stage == Flight::Stage::planned; });
  // What had been started behind them may be next now: peers are running it already.
  for (auto& [number, lane] : lanes_) lane.wake.notify_all();
}

}  // namespace riffle::runtime
