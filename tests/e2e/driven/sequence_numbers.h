#pragma once

// What sequence_server.cu and the model of it (tests/e2e/sequence_model.h) compute alike. All is
// unsigned and wraps, so that no order of additions changes a result.
#ifdef __CUDACC__
#define TORPOR_ON_BOTH __host__ __device__
#else
#define TORPOR_ON_BOTH
#endif

namespace torpor::sequence {

constexpr unsigned kWidth = 128;  // of a key, a value and what passes from layer to layer
constexpr unsigned kLayers = 2;
constexpr unsigned kProjections = 3;  // query, key, value
constexpr unsigned kMaxTokens = 1024;
constexpr unsigned kPageTokens = 64;     // of a cache in pages
constexpr unsigned kFirstCapacity = 32;  // tokens of a cache in one piece, which doubles
constexpr unsigned kMaxBlocks = 4;       // that requests allocate and free
constexpr unsigned kElementsPerKib = 256;

TORPOR_ON_BOTH inline unsigned Mix(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

// Element `i` of the embedding table, of the layers' weights, of a block allocated with `value`.
TORPOR_ON_BOTH inline unsigned TableElement(unsigned seed, unsigned i) {
  return Mix(seed ^ Mix(i));
}
TORPOR_ON_BOTH inline unsigned WeightElement(unsigned seed, unsigned layer, unsigned i) {
  return Mix(TableElement(seed, i) + layer);
}
TORPOR_ON_BOTH inline unsigned BlockElement(unsigned value, unsigned i) { return Mix(value + i); }

// What element `i` adds to a digest, in which no two may change places.
TORPOR_ON_BOTH inline unsigned Digest(unsigned element, unsigned i) {
  return Mix(element + i * 0x9e3779b9u);
}

// What a score counts for in the sum of values.
TORPOR_ON_BOTH inline unsigned Attention(unsigned score) { return Mix(score); }

// The token that follows the one whose last layer gave `output`.
TORPOR_ON_BOTH inline unsigned NextToken(unsigned output) { return Mix(output) % 50000; }

}  // namespace torpor::sequence
