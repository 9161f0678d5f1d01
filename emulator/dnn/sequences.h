#pragma once

#include <cstddef>
#include <vector>

#include "nvidia/cudnn/recurrent.h"

// Conversion of batches of sequences, of any type and layout, to and from dense values: ordered by
// step, each step holding the whole batch, with zeros after the end of a sequence.
namespace torpor::emulator {

template <typename T>
std::vector<T> LoadSequences(const DnnRnnData& shape, const void* data);

// Also sets the elements after the end of a sequence to the shape's filling, if the shape has one.
template <typename T>
void StoreSequences(const DnnRnnData& shape, void* data, const std::vector<T>& values);

// Convert `count` contiguous elements, at most INT32_MAX, as for all sequences.
template <typename T>
std::vector<T> LoadElements(std::int32_t type, const void* data, std::size_t count);
template <typename T>
void StoreElements(std::int32_t type, void* data, const std::vector<T>& values);

}  // namespace torpor::emulator
