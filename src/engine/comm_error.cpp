#include "riffle/comm_error.h"

#include <fmt/format.h>

namespace riffle {

std::string_view name_of(CommFailure failure) {
  switch (failure) {
    case CommFailure::died:
      return "died";
    case CommFailure::frozen:
      return "is frozen";
    case CommFailure::absent:
      return "never joined";
    case CommFailure::timed_out:
      return "did not come in time";
    case CommFailure::mismatch:
      return "made another call";
    case CommFailure::aborted:
      return "gave up";
  }
  return "failed";
}

namespace {

// "rank 3 on host alpha died in all_reduce of {0 1 3}, bucket 2, step 17: process 812 is gone"
std::string describe(CommFailure failure, Rank rank, const std::string& host,
                     const CommContext& context, std::string_view detail) {
  std::string text = rank < 0 ? std::string("a peer") : fmt::format("rank {}", rank);
  if (!host.empty()) text += fmt::format(" on host {}", host);
  text += fmt::format(" {}", name_of(failure));
  if (!context.operation.empty()) text += fmt::format(" in {}", context.operation);
  if (context.group != nullptr) text += fmt::format(" of {}", print(*context.group));
  if (context.bucket >= 0) text += fmt::format(", bucket {}", context.bucket);
  if (context.step >= 0) text += fmt::format(", step {}", context.step);
  if (!detail.empty()) text += fmt::format(": {}", detail);
  return text;
}

}  // namespace

CommError::CommError(CommFailure failure, Rank rank, std::string host, const CommContext& context,
                     std::string_view detail)
    : std::runtime_error(describe(failure, rank, host, context, detail)),
      failure_(failure),
      rank_(rank),
      host_(std::move(host)),
      group_(context.group != nullptr ? *context.group : Group()),
      operation_(context.operation),
      bucket_(context.bucket),
      step_(context.step) {}

CommError::CommError(CommFailure failure, std::string host, std::string operation,
                     const std::string& message)
    : std::runtime_error(message),
      failure_(failure),
      rank_(-1),
      host_(std::move(host)),
      operation_(std::move(operation)),
      bucket_(-1),
      step_(-1) {}

}  // namespace riffle
