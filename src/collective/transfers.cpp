#include "collective/transfers.h"

namespace riffle::collective {

void Transfers::add(Request request, const Note& note) {
  ++open_;
  if (free_.empty()) {
    requests_.push_back(request);
    notes_.push_back(note);
    used_.push_back(1);
    return;
  }
  const std::size_t index = free_.back();
  free_.pop_back();
  requests_[index] = request;
  notes_[index] = note;
  used_[index] = 1;
}

Transfers::Note Transfers::take(std::size_t index) {
  used_[index] = 0;
  free_.push_back(index);
  --open_;
  return notes_[index];
}

std::optional<Transfers::Note> Transfers::test() {
  for (std::size_t i = 0; i < requests_.size(); ++i)
    if (used_[i] != 0 && engine_->test(requests_[i])) return take(i);
  return std::nullopt;
}

Transfers::Note Transfers::wait(const Wait& how) {
  return take(engine_->wait_any(requests_, how));
}

std::vector<Transfers::Note> Transfers::open() const {
  std::vector<Note> notes;
  for (std::size_t i = 0; i < notes_.size(); ++i)
    if (used_[i] != 0) notes.push_back(notes_[i]);
  return notes;
}

void Transfers::cancel() noexcept {
  for (Request& request : requests_)
    if (!request.empty()) engine_->cancel(request);
}

}  // namespace riffle::collective
