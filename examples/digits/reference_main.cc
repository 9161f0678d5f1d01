// digits-reference: answers of the CPU reference, for tests and for torpor-loadgen's checks.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "examples/digits/model.h"
#include "examples/digits/reference.h"
#include "examples/service/json_numbers.h"
#include "examples/service/program.h"

namespace torpor::examples::digits {
namespace {

constexpr const char* kUsage =
    R"(usage: digits-reference --write-expected FILE [--images FILE] [--weights FILE] [--count N]

Writes N request/answer pairs for the `digits` example, one JSON object a line:
  {"request": {...}, "expected": {...}, "tolerance": T}

  --write-expected FILE  where to (- is stdout)
  --images FILE          images, one {"pixels":[64 numbers 0..16]} a line
                         (default: held_out.jsonl beside the program)
  --weights FILE         default: digits.f32 beside the program
  --count N              how many of the images (default 50)
)";

// Softmax of float32 arithmetic in another order of summation, five digits printed.
constexpr double kTolerance = 2e-3;

std::string Pair(const std::vector<float>& weights, const std::vector<double>& pixels) {
  const std::vector<double> probabilities = Softmax(ReferenceLogits(weights, pixels));
  const std::vector<float> narrow(probabilities.begin(), probabilities.end());
  const std::vector<float> image(pixels.begin(), pixels.end());
  return R"({"request":{"pixels":)" + FormatNumbers(image.data(), image.size(), 0) +
         R"(},"expected":)" + FormatPrediction(narrow.data()) +
         ",\"tolerance\":" + std::to_string(kTolerance) + "}\n";
}

int Write(const std::vector<float>& weights, std::ifstream& images, int count, std::FILE* out) {
  std::string line;
  while (count > 0 && std::getline(images, line)) {
    const auto members = ParseNumbers(line);
    if (!members || members->count("pixels") == 0 || members->at("pixels").size() != kPixels) {
      std::fprintf(stderr, "an image is not {\"pixels\":[64 numbers]}: %s\n", line.c_str());
      return 1;
    }
    std::fputs(Pair(weights, members->at("pixels")).c_str(), out);
    --count;
  }
  if (count > 0) std::fprintf(stderr, "the images ended %d short of --count\n", count);
  return count > 0 ? 1 : 0;
}

int Main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv, kUsage,
                                 {{"write-expected", ""},
                                  {"images", ProgramFolder() + "/held_out.jsonl"},
                                  {"weights", ProgramFolder() + "/digits.f32"},
                                  {"count", "50"}});
  const std::string& path = flags.at("write-expected");
  std::ifstream images(flags.at("images"));
  std::FILE* out = path == "-" ? stdout : std::fopen(path.c_str(), "w");
  if (out == nullptr || !images) {
    std::fprintf(stderr, "cannot open %s or %s\n%s", path.c_str(), flags.at("images").c_str(),
                 kUsage);
    return 2;
  }
  const int status =
      Write(ReadWeights(flags.at("weights")), images, IntFlag(flags, "count", 1, 1 << 20), out);
  return std::fclose(out) == 0 ? status : 1;
}

}  // namespace
}  // namespace torpor::examples::digits

int main(int argc, char** argv) {
  return torpor::examples::RunProgram("digits-reference", torpor::examples::digits::Main, argc,
                                      argv);
}
