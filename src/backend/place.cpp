#include "backend/place.h"

#include <algorithm>

namespace riffle::backend {

void TorchStore::set(const std::string& key, const std::string& value, Deadline /*deadline*/) {
  store_->set(key, std::vector<std::uint8_t>(value.begin(), value.end()));
}

std::string TorchStore::wait(const std::string& key, Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  try {
    store_->wait({key}, std::max(left, std::chrono::milliseconds(1)));
  } catch (const c10::Error&) {
    if (Clock::now() < deadline) throw;  // the store's own trouble, in its own words
    throw CommError(CommFailure::timed_out, -1, "", {.operation = "join"}, "");
  }
  const std::vector<std::uint8_t> value = store_->get(key);
  return {value.begin(), value.end()};
}

}  // namespace riffle::backend
