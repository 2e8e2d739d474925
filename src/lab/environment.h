// What a lab tells the workers on its hosts, beside what torchrun would.
#pragma once

#include "lab/lab.h"
#include "process/job_environment.h"

namespace riffle::lab {

// Of `per_host` ranks on every host, who meet at host 0.
process::JobShape shape_of(const Lab& lab, int per_host = 1);

// The same for all ranks; emulated_compute.h reads it. The clock of `lab` must have been started.
process::Environment worker_environment(const LabOptions& options, const Lab& lab,
                                        const process::JobShape& shape);

}  // namespace riffle::lab
