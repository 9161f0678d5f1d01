#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string>

#include "examples/digits/model.h"
#include "examples/digits/reference.h"
#include "examples/service/json_numbers.h"

namespace torpor::examples::digits {
namespace {

const char* const kFolder = DIGITS_FOLDER;

// train.py writes its own logits beside the images it never trained on.
TEST(DigitsReferenceTest, AgreesWithTheTrainingScript) {
  const auto weights = ReadWeights(std::string(kFolder) + "/weights.f32");
  std::ifstream images(std::string(kFolder) + "/held_out.jsonl");
  int count = 0;
  int right = 0;
  for (std::string line; std::getline(images, line); ++count) {
    const auto members = ParseNumbers(line);
    ASSERT_TRUE(members.has_value()) << line;
    const auto logits = ReferenceLogits(weights, members->at("pixels"));
    ASSERT_EQ(logits.size(), static_cast<std::size_t>(kClasses));
    for (std::size_t i = 0; i < logits.size(); ++i) {
      EXPECT_NEAR(logits[i], members->at("logits")[i], 1e-4);
    }
    const auto label = std::max_element(logits.begin(), logits.end()) - logits.begin();
    right += static_cast<double>(label) == members->at("label")[0] ? 1 : 0;
  }
  EXPECT_EQ(count, 360);
  EXPECT_GT(right, count * 97 / 100);
}

TEST(DigitsReferenceTest, SoftmaxSumsToOneWhateverTheLogits) {
  const auto probabilities = Softmax({1000, 999, -1000});
  EXPECT_NEAR(probabilities[0] + probabilities[1] + probabilities[2], 1, 1e-12);
  EXPECT_NEAR(probabilities[0] / probabilities[1], 2.718281828, 1e-6);
}

TEST(DigitsModelTest, RefusesAFileOfAnotherSize) {
  EXPECT_THROW(ReadWeights(std::string(kFolder) + "/held_out.jsonl"), std::runtime_error);
  EXPECT_THROW(ReadWeights("/nowhere/weights"), std::runtime_error);
}

TEST(DigitsModelTest, TheAnswerNamesTheLikeliestLabel) {
  float probabilities[kClasses] = {};
  probabilities[4] = 0.75F;
  EXPECT_EQ(FormatPrediction(probabilities).rfind(R"({"label":4,"probabilities":[0.00000,)", 0),
            0U);
}

}  // namespace
}  // namespace torpor::examples::digits
