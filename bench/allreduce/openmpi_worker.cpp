// One worker of `riffle bench allreduce`: Open MPI, started by mpirun.
//
//   allreduce_openmpi SOCKET
#include <mpi.h>

#include <cstdio>
#include <vector>

#include "worker.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<float> values;
  riffle::bench::serve(argv[1], rank, size,
                       {
                           .prepare =
                               [&](std::size_t bytes) {
                                 values.assign(bytes / sizeof(float), 0);
                                 return values.data();
                               },
                           .meet = [] { MPI_Barrier(MPI_COMM_WORLD); },
                           .all_reduce =
                               [](float* data, std::size_t count) {
                                 MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count),
                                               MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
                               },
                       });
  MPI_Finalize();
  return 0;
}
