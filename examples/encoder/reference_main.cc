// encoder-reference: answers of the CPU reference, for tests and for torpor-loadgen's checks.
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "examples/encoder/reference.h"
#include "examples/encoder/shape_flags.h"
#include "examples/service/program.h"

namespace torpor::examples::encoder {
namespace {

constexpr const char* kUsage =
    R"(usage: encoder-reference --write-expected FILE [flags]

Writes N request/answer pairs for the `encoder` example, one JSON object a line:
  {"request": {"tokens":[...]}, "expected": {"embedding":[...]}, "tolerance": T}

  --write-expected FILE  where to (- is stdout)
  --count N              how many (default 8)
  --least-tokens N       shortest request (default 8)
  --most-tokens N        longest request (default 24)
  --request-seed N       of the requests' tokens (default 1)
)";

std::string Usage() { return std::string(kUsage) + kShapeUsage; }

// Float32 through some layers against double precision; the answers are of the order of 1.
constexpr double kTolerance = 2e-3;

std::string Pair(const Shape& shape, const Weights& weights, const std::vector<int>& tokens) {
  std::string list;
  for (const int token : tokens) {
    if (!list.empty()) list += ',';
    list += std::to_string(token);
  }
  const std::vector<double> embedding = ReferenceEmbedding(shape, weights, tokens);
  const std::vector<float> narrow(embedding.begin(), embedding.end());
  return R"({"request":{"tokens":[)" + list + R"(]},"expected":)" +
         FormatEmbedding(narrow.data(), shape.hidden) +
         ",\"tolerance\":" + std::to_string(kTolerance) + "}\n";
}

int Main(int argc, char** argv) {
  Flags known = ShapeFlags();
  known.insert({{"write-expected", ""},
                {"count", "8"},
                {"least-tokens", "8"},
                {"most-tokens", "24"},
                {"request-seed", "1"}});
  const Flags flags = ParseFlags(argc, argv, Usage(), known);
  const std::string& path = flags.at("write-expected");
  std::FILE* out = path == "-" ? stdout : std::fopen(path.c_str(), "w");
  if (out == nullptr) {
    std::fprintf(stderr, "cannot write %s\n%s", path.c_str(), Usage().c_str());
    return 2;
  }
  const Shape shape = ShapeFromFlags(flags);
  const Weights weights = MakeWeights(shape);
  const int least = IntFlag(flags, "least-tokens", 1, kMaxTokens);
  const int most = IntFlag(flags, "most-tokens", least, kMaxTokens);
  const int count = IntFlag(flags, "count", 1, 1 << 20);
  std::mt19937 random(static_cast<unsigned>(IntFlag(flags, "request-seed", 0, 0x7fffffff)));
  for (int i = 0; i < count; ++i) {
    std::vector<int> tokens(static_cast<std::size_t>(least) +
                            random() % static_cast<unsigned>(most - least + 1));
    for (int& token : tokens) {
      token = static_cast<int>(random() % static_cast<unsigned>(shape.vocabulary));
    }
    std::fputs(Pair(shape, weights, tokens).c_str(), out);
  }
  return std::fclose(out) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace torpor::examples::encoder

int main(int argc, char** argv) {
  return torpor::examples::RunProgram("encoder-reference", torpor::examples::encoder::Main, argc,
                                      argv);
}
