// A function that keeps a sequence in GPU memory: each token's keys and values stay there (a KV
// cache), and every answer depends on all of them. Beside them it has a table, as a model has, and
// blocks that requests allocate and free.
//   POST /step {"token":[t],"count":[n]}  appends t and the n - 1 tokens that follow from it
//   POST /reset                           forgets the sequence and frees its memory
//   POST /allocate {"block":[b],"kilobytes":[k],"value":[v]}
//   POST /change {"block":[b],"value":[v]}  adds v to each element of the block's first half
//   POST /free {"block":[b]}
//   POST /bytes                           ->  {"sum":B}, the device memory that is allocated
// All others answer {"sum":S}, of the last token's output, the table and the blocks. The same is
// modelled by tests/e2e/sequence_model.h.
//   --paged 0  keys and values lie in one piece each, which is replaced by one of twice the size
//   --paged 1  they lie in pages, whose addresses are parameters of the kernels
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "examples/service/cuda_error.h"
#include "examples/service/endpoint.h"
#include "tests/e2e/driven/sequence_numbers.h"
#include "tests/e2e/driven/sum_service.h"

namespace torpor::examples {
namespace {

using sequence::kLayers;
using sequence::kMaxBlocks;
using sequence::kMaxTokens;
using sequence::kWidth;

constexpr unsigned kMaxPages = kMaxTokens / sequence::kPageTokens;
constexpr unsigned kWeights = sequence::kProjections * kWidth * kWidth;  // of a layer
constexpr int kBlocks = 16;
constexpr int kThreads = 256;

// Rows of kWidth elements, a token each.
struct Rows {
  unsigned* pages[kMaxPages];
  unsigned page_tokens;

  __device__ unsigned* at(unsigned token) const {
    return pages[token / page_tokens] + token % page_tokens * kWidth;
  }
};

__global__ void FillTable(unsigned* table, unsigned count, unsigned seed) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    table[i] = sequence::TableElement(seed, i);
  }
}

__global__ void FillWeights(unsigned* weights, unsigned seed, unsigned layer) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < kWeights;
       i += gridDim.x * blockDim.x) {
    weights[i] = sequence::WeightElement(seed, layer, i);
  }
}

__global__ void FillBlock(unsigned* block, unsigned count, unsigned value) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    block[i] = sequence::BlockElement(value, i);
  }
}

__global__ void Add(unsigned* block, unsigned count, unsigned value) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    block[i] += value;
  }
}

__global__ void AddDigest(const unsigned* elements, unsigned count, unsigned long long* total) {
  unsigned long long sum = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    sum += sequence::Digest(elements[i], i);
  }
  atomicAdd(total, sum);
}

__global__ void Embed(const unsigned* table, unsigned count, unsigned token, unsigned* hidden) {
  hidden[threadIdx.x] = table[(token * kWidth + threadIdx.x) % count];
}

// A block each for query, key and value.
__global__ void Project(const unsigned* weights, const unsigned* hidden, unsigned* query, Rows keys,
                        Rows values, unsigned token) {
  const unsigned* const matrix = weights + blockIdx.x * kWidth * kWidth;
  unsigned sum = 0;
  for (unsigned i = 0; i < kWidth; ++i) sum += matrix[i * kWidth + threadIdx.x] * hidden[i];
  unsigned* const to = blockIdx.x == 0   ? query
                       : blockIdx.x == 1 ? keys.at(token)
                                         : values.at(token);
  to[threadIdx.x] = sum;
}

__global__ void Score(const unsigned* query, Rows keys, unsigned tokens, unsigned* scores) {
  const unsigned token = blockIdx.x * blockDim.x + threadIdx.x;
  if (token >= tokens) return;
  const unsigned* const key = keys.at(token);
  unsigned score = 0;
  for (unsigned i = 0; i < kWidth; ++i) score += query[i] * key[i];
  scores[token] = sequence::Attention(score);
}

__global__ void Attend(const unsigned* scores, Rows values, unsigned tokens, unsigned* hidden) {
  unsigned sum = hidden[threadIdx.x];
  for (unsigned token = 0; token < tokens; ++token) {
    sum += scores[token] * values.at(token)[threadIdx.x];
  }
  hidden[threadIdx.x] = sequence::Mix(sum);
}

// Device memory that is freed with its owner.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t elements) { Check(cudaMalloc(&data_, elements * sizeof(unsigned))); }
  Buffer(Buffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~Buffer() { cudaFree(data_); }

  unsigned* get() const { return data_; }

 private:
  unsigned* data_ = nullptr;
};

// The keys, or the values, of one layer.
class Cache {
 public:
  explicit Cache(bool is_paged) : is_paged_(is_paged) {
    rows_.page_tokens = is_paged ? sequence::kPageTokens : 0;
  }

  // Makes room for one more token than `tokens`, which are there.
  void Reserve(unsigned tokens) {
    if (tokens < capacity_) return;
    if (is_paged_) return AddPage();
    const unsigned capacity = capacity_ == 0 ? sequence::kFirstCapacity : 2 * capacity_;
    Buffer larger(std::size_t{capacity} * kWidth);
    if (tokens > 0) {
      Check(cudaMemcpyAsync(larger.get(), rows_.pages[0],
                            std::size_t{tokens} * kWidth * sizeof(unsigned),
                            cudaMemcpyDeviceToDevice));
    }
    pages_.clear();
    pages_.push_back(std::move(larger));
    rows_.pages[0] = pages_.back().get();
    rows_.page_tokens = capacity_ = capacity;
  }

  void Clear() {
    pages_.clear();
    capacity_ = 0;
  }

  const Rows& rows() const { return rows_; }

 private:
  void AddPage() {
    pages_.emplace_back(std::size_t{sequence::kPageTokens} * kWidth);
    rows_.pages[pages_.size() - 1] = pages_.back().get();
    capacity_ += sequence::kPageTokens;
  }

  const bool is_paged_;
  std::vector<Buffer> pages_;
  unsigned capacity_ = 0;
  Rows rows_{};
};

class Sequence {
 public:
  Sequence(unsigned seed, unsigned kilobytes, bool is_paged)
      : table_count_(kilobytes * sequence::kElementsPerKib),
        table_(table_count_),
        hidden_(kWidth),
        query_(kWidth),
        scores_(kMaxTokens),
        keys_{Cache(is_paged), Cache(is_paged)},
        values_{Cache(is_paged), Cache(is_paged)} {
    Check(cudaMallocHost(&answer_, sizeof(*answer_)));
    Check(cudaMalloc(&total_, sizeof(*total_)));
    FillTable<<<kBlocks, kThreads>>>(table_.get(), table_count_, seed);
    for (unsigned layer = 0; layer < kLayers; ++layer) {
      weights_[layer] = Buffer(kWeights);
      FillWeights<<<kBlocks, kThreads>>>(weights_[layer].get(), seed, layer);
    }
    Answer();
  }

  unsigned long long Step(unsigned token, unsigned count) {
    for (unsigned i = 0; i < count && tokens_ < kMaxTokens; ++i) {
      Append(token);
      if (i + 1 == count) break;
      unsigned output = 0;
      Check(cudaMemcpy(&output, hidden_.get(), sizeof(output), cudaMemcpyDeviceToHost));
      token = sequence::NextToken(output);
    }
    return Answer();
  }

  unsigned long long Reset() {
    tokens_ = 0;
    for (Cache& cache : keys_) cache.Clear();
    for (Cache& cache : values_) cache.Clear();
    return Answer();
  }

  // Blocks of odd values are made by the GPU, the others come from the host.
  unsigned long long Allocate(unsigned which, unsigned kilobytes, unsigned value) {
    Block& block = blocks_[which];
    block.count = kilobytes * sequence::kElementsPerKib;
    block.buffer = Buffer();
    block.buffer = Buffer(block.count);
    if (value % 2 == 1) {
      FillBlock<<<kBlocks, kThreads>>>(block.buffer.get(), block.count, value);
      return Answer();
    }
    std::vector<unsigned> elements(block.count);
    for (unsigned i = 0; i < block.count; ++i) elements[i] = sequence::BlockElement(value, i);
    Check(cudaMemcpy(block.buffer.get(), elements.data(), block.count * sizeof(unsigned),
                     cudaMemcpyHostToDevice));
    return Answer();
  }

  unsigned long long Change(unsigned which, unsigned value) {
    const Block& block = blocks_[which];
    if (block.count > 0) {
      Add<<<kBlocks, kThreads>>>(block.buffer.get(), block.count / 2, value);
    }
    return Answer();
  }

  unsigned long long Free(unsigned which) {
    blocks_[which] = {};
    return Answer();
  }

  static unsigned long long Bytes() {
    std::size_t free = 0;
    std::size_t total = 0;
    Check(cudaMemGetInfo(&free, &total));
    return total - free;
  }

 private:
  struct Block {
    Buffer buffer;
    unsigned count = 0;
  };

  void Append(unsigned token) {
    Embed<<<1, kWidth>>>(table_.get(), table_count_, token, hidden_.get());
    for (unsigned layer = 0; layer < kLayers; ++layer) {
      keys_[layer].Reserve(tokens_);
      values_[layer].Reserve(tokens_);
      Project<<<sequence::kProjections, kWidth>>>(weights_[layer].get(), hidden_.get(),
                                                  query_.get(), keys_[layer].rows(),
                                                  values_[layer].rows(), tokens_);
      Score<<<tokens_ / kWidth + 1, kWidth>>>(query_.get(), keys_[layer].rows(), tokens_ + 1,
                                              scores_.get());
      Attend<<<1, kWidth>>>(scores_.get(), values_[layer].rows(), tokens_ + 1, hidden_.get());
    }
    ++tokens_;
  }

  unsigned long long Answer() {
    Check(cudaMemsetAsync(total_, 0, sizeof(*total_)));
    if (tokens_ > 0) AddDigest<<<1, kWidth>>>(hidden_.get(), kWidth, total_);
    AddDigest<<<kBlocks, kThreads>>>(table_.get(), table_count_, total_);
    for (const Block& block : blocks_) {
      if (block.count == 0) continue;
      AddDigest<<<kBlocks, kThreads>>>(block.buffer.get(), block.count, total_);
    }
    Check(cudaGetLastError());
    Check(cudaMemcpyAsync(answer_, total_, sizeof(*total_), cudaMemcpyDeviceToHost));
    Check(cudaDeviceSynchronize());
    return *answer_;
  }

  const unsigned table_count_;
  const Buffer table_;
  const Buffer hidden_;
  const Buffer query_;
  const Buffer scores_;
  std::array<Buffer, kLayers> weights_;
  std::array<Cache, kLayers> keys_;
  std::array<Cache, kLayers> values_;
  std::array<Block, kMaxBlocks> blocks_;
  unsigned tokens_ = 0;
  unsigned long long* total_ = nullptr;
  unsigned long long* answer_ = nullptr;  // pinned
};

std::optional<unsigned long long> Answer(Sequence& sequence, const SumRequest& request) {
  if (request.Is("/step", "token") && request.Is("/step", "count")) {
    return sequence.Step(request.number("token"), request.number("count"));
  }
  if (request.Is("/reset")) return sequence.Reset();
  if (request.Is("/bytes")) return Sequence::Bytes();
  if (request.Is("/allocate", "block") && request.Is("/allocate", "kilobytes") &&
      request.Is("/allocate", "value")) {
    return sequence.Allocate(request.number("block") % kMaxBlocks, request.number("kilobytes"),
                             request.number("value"));
  }
  if (request.Is("/change", "block") && request.Is("/change", "value")) {
    return sequence.Change(request.number("block") % kMaxBlocks, request.number("value"));
  }
  if (request.Is("/free", "block")) return sequence.Free(request.number("block") % kMaxBlocks);
  return std::nullopt;
}

int Main(int argc, char** argv) {
  Flags known = EndpointFlags();
  known["seed"] = "1";
  known["kilobytes"] = "1024";
  known["paged"] = "0";
  const Flags flags =
      ParseFlags(argc, argv,
                 std::string("usage: sequence_server [--seed N] [--kilobytes N] [--paged 1] "
                             "[flags]\n") +
                     kEndpointUsage,
                 known);
  Sequence sequence(static_cast<unsigned>(IntFlag(flags, "seed", 0, 1 << 30)),
                    static_cast<unsigned>(IntFlag(flags, "kilobytes", 1, 1 << 20)),
                    IntFlag(flags, "paged", 0, 1) == 1);
  ServeSums(flags, [&](const SumRequest& request) { return Answer(sequence, request); });
  return 0;
}

}  // namespace
}  // namespace torpor::examples

int main(int argc, char** argv) {
  return torpor::examples::RunProgram("sequence_server", torpor::examples::Main, argc, argv);
}
