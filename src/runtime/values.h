// The values of a model in its buckets: gradients and weights where they are exchanged, buffers,
// what an outer optimizer keeps, and the way to the optimizer's state. Takes snapshots and merges
// what has arrived. One thread at a time.
#pragma once

#include "runtime/flight.h"
#include "runtime/layout.h"
#include "schedule/schedule.h"

namespace riffle::runtime {

struct GradientPart {
  TensorView values;      // without flags
  std::size_t whole = 0;  // elements of the part, with them
};

class Values {
 public:
  // The model's own tensors are copied from, where their values are kept here.
  Values(Memory& memory, const ModelSpec& model, Layout layout, const schedule::Needs& needs);

  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] Memory& memory() const { return memory_; }
  // data is nullptr where they are not kept here.
  [[nodiscard]] TensorView gradient(int parameter) const;
  [[nodiscard]] TensorView weights(int parameter) const;
  [[nodiscard]] TensorView buffer(int index) const;
  // Parameters first, then buffers, where they live now.
  [[nodiscard]] std::size_t tensors() const;
  [[nodiscard]] TensorView tensor(std::size_t index) const;

  // --- What the step machine asks for.
  // The bucket's gradient is complete: zero, and flagged so, where `used` (by parameter) is 0.
  void complete(int bucket, std::span<const char> used);
  void snapshot(Flight& flight);
  // `self` is this rank's place in the group. Gives the flight's memory back.
  void merge(Flight& flight, int self);
  void give_back(Flight& flight);

  // Whether any member used the parameter, as its flag says; looks at a value.
  [[nodiscard]] bool used(int parameter) const;
  // The gradients of a bucket, part by part.
  [[nodiscard]] std::vector<GradientPart> gradients_of(int bucket) const;
  void scale(TensorView x, double factor) const;

  // --- The optimizer's state, where it is now.
  void set_state(int parameter, std::vector<TensorView> tensors);

  // --- What outlives a step beside the model: of the outer optimizer, and of what is rounded.
  // Begins with the weights as they are now.
  void start_lasting();
  // What `self` serves of a program, to begin with what lasts; and where the values live that such
  // an exchange is of.
  [[nodiscard]] std::vector<Served> served(const Program& program, Rank self) const;
  [[nodiscard]] const std::vector<TensorView>& memory_of(const Exchange& exchange) const;
  // What all ranks must share bit for bit: they begin with the lowest rank's.
  [[nodiscard]] std::vector<TensorView> shared() const;
  // All of it, in a fixed order, for checkpoints.
  [[nodiscard]] std::vector<TensorView> lasting() const;

  // Other buckets, for what other programs need: weights and buffers move with their tensors (where
  // they were kept they still are), gradients where `gradients`.
  void move_to(BucketPlan plan, const schedule::Needs& needs, bool gradients);

 private:
  struct Outer {
    Flat agreed;
    Flat momentum;
  };
  void allocate();
  void load();
  [[nodiscard]] Parts state_parts(int bucket) const;
  enum class Way { gather, scatter };
  void move_state(int bucket, const std::vector<TensorView>& flat, Way way);
  [[nodiscard]] const Parts& parts_of(const Exchange& exchange) const;
  [[nodiscard]] const std::vector<TensorView>& answered(const Exchange& exchange) const;
  void prepare_rounding(Flight& flight);
  Flat copied(const Parts& parts, const std::vector<TensorView>& from);
  void join(Flight& flight, const std::vector<TensorView>& with, int self);
  void move_agreed(TensorView mean, const TensorView& agreed, const TensorView& momentum,
                   const Merge& merge);

  Memory& memory_;
  ModelSpec model_;
  Layout layout_;
  schedule::Needs needs_;
  std::vector<Flat> gradients_;  // by bucket; empty where not kept
  std::vector<Flat> weights_;
  std::vector<Flat> buffers_;
  std::vector<Outer> outer_;
  std::vector<Flat> lost_;                      // of gradients that are rounded, by bucket
  std::vector<Flat> reference_;                 // of weights that are rounded or served, by bucket
  std::vector<Flat> statistics_;                // of buffers that are served: the last answers
  std::vector<std::vector<TensorView>> state_;  // of the optimizer, by parameter
  FlatPool pool_;
};

}  // namespace riffle::runtime
