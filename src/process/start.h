// Starts one process whose output we read.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/descriptor.h"

namespace riffle::process {

struct Started {
  pid_t pid = 0;  // also the number of its process group
  Descriptor output;
  Descriptor error;
};

// `environment` is all of it, as "NAME=value". Standard input is empty. The process is killed when
// the calling thread ends. UsageError when the command cannot be run.
Started start_process(const std::vector<std::string>& command,
                      const std::vector<std::string>& environment);

}  // namespace riffle::process
