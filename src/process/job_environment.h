// The environment of workers, as torchrun would set it; for launch, lab and race.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace riffle::process {

using Environment = std::map<std::string, std::string>;

struct JobShape {
  int workers = 1;
  int per_host = 1;
  std::string master;  // host of rank 0
  int master_port = 0;
};

// Of this process.
Environment own_environment();
// Ours with what torchrun sets, the same for all ranks.
Environment job_environment(const JobShape& shape);
// As "NAME=value".
std::vector<std::string> variables_of(const Environment& environment);
// Of one rank, as "NAME=value".
std::vector<std::string> rank_environment(Environment environment, const JobShape& shape, int rank);

}  // namespace riffle::process
