// A gradient as a matrix and its two factors, as program.h says of LowRank: M is about P Q^T. The
// matrix lies row by row, factors lie column by column.
#pragma once

#include <cstddef>
#include <cstdint>

namespace riffle::codec {

template <typename T>
struct Factors {
  T* matrix = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  T* left = nullptr;   // P, of `rows` a column
  T* right = nullptr;  // Q, of `columns` a column
  std::size_t rank = 0;
};

// Q of the first step, before it is made orthonormal: normal numbers, other ones for each stream.
template <typename T>
void draw_right(const Factors<T>& factors, std::uint64_t stream);

// Adds to M what was lost before; Q <- orthonormal, P <- M Q.
template <typename T>
void take_left(const Factors<T>& factors, const T* lost);
// Of the mean of all members' P: P <- orthonormal, Q <- M^T P.
template <typename T>
void take_right(const Factors<T>& factors);
// Of the mean of all members' Q: lost <- M - P Q^T, where that is a number; M <- P Q^T.
template <typename T>
void put_back(const Factors<T>& factors, T* lost);

// Gram-Schmidt, from the first column on. A column that the ones before it make up but for
// rounding, a zero one too, would stay lost for ever: another direction takes its place.
template <typename T>
void orthonormalize(T* columns, std::size_t length, std::size_t count);

}  // namespace riffle::codec
