// One run of serving under an order of events drawn from a seed; see serving.cpp.
#pragma once

#include <cstdint>
#include <string>

namespace riffle::verifier {

// Owners that let workers be `ahead`, where `promised` is what a worker counts on. What went wrong;
// empty where nothing did.
std::string play_serving(int workers, int ahead, int promised, std::uint64_t seed);

}  // namespace riffle::verifier
