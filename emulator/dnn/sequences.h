#pragma once

#include <cstddef>
#include <vector>

#include "nvidia/cudnn/recurrent.h"

// Batches of sequences of any type and layout, as computations see them: step after step, each of
// the whole batch, zeros beyond the end of a sequence.
namespace torpor::emulator {

template <typename T>
std::vector<T> LoadSequences(const DnnRnnData& shape, const void* data);

// What lies beyond the end of a sequence becomes the filling, or stays.
template <typename T>
void StoreSequences(const DnnRnnData& shape, void* data, const std::vector<T>& values);

// `count` elements one after another, at most INT32_MAX, as are those of all sequences.
template <typename T>
std::vector<T> LoadElements(std::int32_t type, const void* data, std::size_t count);
template <typename T>
void StoreElements(std::int32_t type, void* data, const std::vector<T>& values);

}  // namespace torpor::emulator
