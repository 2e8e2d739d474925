// What each launcher says in its own words, brought into one form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "riffle/launch_environment.h"

namespace riffle::engine {

// Variables with checked values.
class Variables {
 public:
  explicit Variables(const GetVariable& get) : get_(get) {}

  [[nodiscard]] std::optional<std::string> text(std::string_view name) const;
  // UsageError unless it is a whole number within the bounds.
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view name, std::int64_t least,
                                                   std::int64_t most) const;
  // As number(); UsageError when it is not set although `because` is.
  [[nodiscard]] std::int64_t needed(std::string_view name, std::string_view because,
                                    std::int64_t least, std::int64_t most) const;

 private:
  const GetVariable& get_;
};

struct Found {
  std::string launcher;
  std::string rank_variable;
  std::string size_variable;
  std::int64_t rank = 0;
  std::int64_t size = 1;
  std::int64_t local_rank = 0;
  std::int64_t local_size = 0;  // 0: not said
  std::string master;           // host of rank 0; empty: not said
  std::string job;              // empty: not said
  std::string secret;           // a random value of the job; empty: there is none
};

std::optional<Found> find_launcher(const Variables& get);

// The first host of a Slurm list: "gpu[07-09,12],login" -> "gpu07". UsageError names `what`.
std::string first_slurm_host(std::string_view list, std::string_view what);

}  // namespace riffle::engine
