// Recurrent layers of the emulated cuDNN against their formulas, computed one number at a time in
// double; gradients against differences of those.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "tests/emulator/dnn/dnn_fixture.h"

namespace torpor::emulator {
namespace {

struct Case {
  const char* name;
  cudnnRNNMode_t cell = CUDNN_LSTM;
  int layers = 1;
  cudnnDirectionMode_t direction = CUDNN_UNIDIRECTIONAL;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnRNNBiasMode_t bias = CUDNN_RNN_DOUBLE_BIAS;
  int projection = 4;  // of 4: none
  cudnnRNNDataLayout_t layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED;
  std::vector<int> lengths = {5, 5, 5};
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

constexpr int kSteps = 5;
constexpr int kBatch = 3;
constexpr int kInput = 3;
constexpr int kHidden = 4;

using Vector = std::vector<double>;

// The place of a sequence's element among those of whole batches.
std::size_t Place(int outer, int i) {
  return static_cast<std::size_t>(outer) * kBatch + static_cast<std::size_t>(i);
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The weights of one pseudo layer as the library tells where they are: by linear layer, a row an
// output. Empty: there is none.
struct Linear {
  Vector matrix;
  Vector bias;
};
using PseudoLayer = std::vector<Linear>;

struct Results {
  std::vector<Vector> y;  // by step * kBatch + sequence; empty beyond its end
  std::vector<Vector> h;  // by pseudo layer * kBatch + sequence
  std::vector<Vector> c;
};

// The cells' formulas as cuDNN's documentation has them.
class Reference {
 public:
  Reference(const Case& given, std::vector<PseudoLayer> weights)
      : case_(given), weights_(std::move(weights)) {}

  Results Run(const std::vector<Vector>& x, std::vector<Vector> h, std::vector<Vector> c) const {
    const int directions = case_.direction == CUDNN_BIDIRECTIONAL ? 2 : 1;
    Results results{x, std::move(h), std::move(c)};
    for (int layer = 0; layer < case_.layers; ++layer) {
      std::vector<Vector> y(results.y.size());
      for (int d = 0; d < directions; ++d) {
        for (int i = 0; i < kBatch; ++i) {
          const std::size_t place = Place(layer * directions + d, i);
          const int length = case_.lengths[static_cast<std::size_t>(i)];
          for (int k = 0; k < length; ++k) {
            const int step = d == 0 ? k : length - 1 - k;
            const std::size_t row = Place(step, i);
            Step(weights_[place / kBatch], results.y[row], results.h[place], results.c[place]);
            y[row].insert(y[row].end(), results.h[place].begin(), results.h[place].end());
          }
        }
      }
      results.y = y;
    }
    return results;
  }

 private:
  static Vector Apply(const Linear& linear, const Vector& x, std::size_t rows) {
    Vector sums(rows);
    for (std::size_t i = 0; i < rows; ++i) {
      if (!linear.bias.empty()) sums[i] = linear.bias[i];
      for (std::size_t j = 0; j < x.size(); ++j) sums[i] += linear.matrix[i * x.size() + j] * x[j];
    }
    return sums;
  }

  void Step(const PseudoLayer& w, const Vector& x, Vector& h, Vector& c) const {
    const std::size_t gates = case_.cell == CUDNN_LSTM ? 4 : case_.cell == CUDNN_GRU ? 3 : 1;
    std::vector<Vector> from_x;
    std::vector<Vector> from_h;
    for (std::size_t g = 0; g < gates; ++g) {
      from_x.push_back(Apply(w[g], x, kHidden));
      from_h.push_back(Apply(w[gates + g], h, kHidden));
    }
    Vector next(kHidden);
    for (std::size_t i = 0; i < kHidden; ++i) {
      const auto sum = [&](std::size_t g) { return from_x[g][i] + from_h[g][i]; };
      if (case_.cell == CUDNN_LSTM) {
        c[i] = Sigmoid(sum(1)) * c[i] + Sigmoid(sum(0)) * std::tanh(sum(2));
        next[i] = Sigmoid(sum(3)) * std::tanh(c[i]);
      } else if (case_.cell == CUDNN_GRU) {
        const double fresh = std::tanh(from_x[2][i] + Sigmoid(sum(0)) * from_h[2][i]);
        const double update = Sigmoid(sum(1));
        next[i] = (1 - update) * fresh + update * h[i];
      } else {
        next[i] = case_.cell == CUDNN_RNN_RELU ? std::max(0.0, sum(0)) : std::tanh(sum(0));
      }
    }
    h = case_.projection == kHidden
            ? next
            : Apply(w[2 * gates], next, static_cast<std::size_t>(case_.projection));
  }

  const Case& case_;
  const std::vector<PseudoLayer> weights_;
};

class RecurrentTest : public DnnTest, public testing::WithParamInterface<Case> {
 protected:
  const Case& case_ = GetParam();
  const int directions_ = case_.direction == CUDNN_BIDIRECTIONAL ? 2 : 1;
  const int pseudo_layers_ = case_.layers * directions_;
  const int output_ = case_.projection * directions_;

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(DnnTest::SetUp());
    ASSERT_DNN(cudnnCreateDropoutDescriptor(&dropout_));
    ASSERT_DNN(cudnnSetDropoutDescriptor(dropout_, handle_, 0, nullptr, 0, 0));
    ASSERT_DNN(cudnnCreateRNNDescriptor(&rnn_));
    ASSERT_DNN(cudnnSetRNNDescriptor_v8(
        rnn_, CUDNN_RNN_ALGO_STANDARD, case_.cell, case_.bias, case_.direction, CUDNN_LINEAR_INPUT,
        case_.type, case_.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
        CUDNN_DEFAULT_MATH, kInput, kHidden, case_.projection, case_.layers, dropout_,
        CUDNN_RNN_PADDED_IO_ENABLED));
    ASSERT_DNN(cudnnCreateRNNDataDescriptor(&x_desc_));
    ASSERT_DNN(cudnnSetRNNDataDescriptor(x_desc_, case_.type, case_.layout, kSteps, kBatch, kInput,
                                         case_.lengths.data(), nullptr));
    ASSERT_DNN(cudnnCreateRNNDataDescriptor(&y_desc_));
    std::array<char, 8> filling{};
    WriteAs(case_.type, filling.data(), 0, kFilling);
    ASSERT_DNN(cudnnSetRNNDataDescriptor(y_desc_, case_.type, case_.layout, kSteps, kBatch, output_,
                                         case_.lengths.data(), filling.data()));
    std::size_t bytes = 0;
    ASSERT_DNN(cudnnGetRNNWeightSpaceSize(handle_, rnn_, &bytes));
    weights_.emplace(case_.type, Dims{static_cast<int>(bytes / BytesOf(case_.type))},
                     CUDNN_TENSOR_NCHW, 1);
    for (double& value : weights_->values()) value *= 0.7;
    weights_->Upload();
  }
  void TearDown() override {
    cudnnDestroyRNNDescriptor(rnn_);
    cudnnDestroyRNNDataDescriptor(x_desc_);
    cudnnDestroyRNNDataDescriptor(y_desc_);
    cudnnDestroyDropoutDescriptor(dropout_);
    DnnTest::TearDown();
  }

  int Rows() const {
    if (case_.layout != CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED) return kSteps * kBatch;
    int rows = 0;
    for (const int length : case_.lengths) rows += length;
    return rows;
  }
  // The place in memory of a vector, or -1.
  int RowOf(int step, int i) const {
    if (step >= case_.lengths[static_cast<std::size_t>(i)]) return -1;
    if (case_.layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED) return step * kBatch + i;
    if (case_.layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED) return i * kSteps + step;
    int row = 0;
    for (int s = 0; s <= step; ++s) {
      for (int j = 0; j < (s == step ? i : kBatch); ++j) {
        if (s < case_.lengths[static_cast<std::size_t>(j)]) ++row;
      }
    }
    return row;
  }

  // A part of the weights where the library says.
  Vector Part(const Vector& weights, cudnnTensorDescriptor_t descriptor,
              const void* address) const {
    if (address == nullptr) return {};
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    int rank = 0;
    std::array<int, 3> dims{};
    std::array<int, 3> strides{};
    EXPECT_EQ(cudnnGetTensorNdDescriptor(descriptor, 3, &type, &rank, dims.data(), strides.data()),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(rank, 3);
    EXPECT_EQ(type, case_.type);
    const auto place = static_cast<std::size_t>(static_cast<const char*>(address) -
                                                static_cast<const char*>(weights_->data())) /
                       BytesOf(case_.type);
    const auto begin = weights.begin() + static_cast<std::ptrdiff_t>(place);
    return {begin, begin + std::ptrdiff_t{dims[0]} * dims[1] * dims[2]};
  }

  std::vector<PseudoLayer> Parts(const Vector& weights) const {
    cudnnTensorDescriptor_t matrix = nullptr;
    cudnnTensorDescriptor_t bias = nullptr;
    EXPECT_EQ(cudnnCreateTensorDescriptor(&matrix), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnCreateTensorDescriptor(&bias), CUDNN_STATUS_SUCCESS);
    const int gates = case_.cell == CUDNN_LSTM ? 4 : case_.cell == CUDNN_GRU ? 3 : 1;
    std::vector<PseudoLayer> parts;
    for (int p = 0; p < pseudo_layers_; ++p) {
      PseudoLayer& layer = parts.emplace_back();
      for (int i = 0; i < 2 * gates + (case_.projection < kHidden ? 1 : 0); ++i) {
        void* at_matrix = nullptr;
        void* at_bias = nullptr;
        EXPECT_EQ(cudnnGetRNNWeightParams(handle_, rnn_, p, WeightBytes(), weights_->data(), i,
                                          matrix, &at_matrix, bias, &at_bias),
                  CUDNN_STATUS_SUCCESS);
        layer.push_back({Part(weights, matrix, at_matrix), Part(weights, bias, at_bias)});
      }
    }
    cudnnDestroyTensorDescriptor(matrix);
    cudnnDestroyTensorDescriptor(bias);
    return parts;
  }
  std::size_t WeightBytes() const { return weights_->values().size() * BytesOf(case_.type); }

  // Vectors by step * kBatch + sequence.
  std::vector<Vector> Sequences(const Vector& values, int size) const {
    std::vector<Vector> sequences(std::size_t{kSteps} * kBatch);
    for (int step = 0; step < kSteps; ++step) {
      for (int i = 0; i < kBatch; ++i) {
        const std::ptrdiff_t row = RowOf(step, i);
        if (row < 0) continue;
        sequences[Place(step, i)] = {values.begin() + row * size,
                                     values.begin() + (row + 1) * size};
      }
    }
    return sequences;
  }
  static std::vector<Vector> Cut(const Vector& values, int size) {
    std::vector<Vector> pieces;
    for (auto at = values.begin(); at != values.end(); at += size)
      pieces.push_back({at, at + size});
    return pieces;
  }

  void ExpectStates(DeviceTensor& states, const std::vector<Vector>& expected) const {
    Vector flat;
    for (const Vector& one : expected) flat.insert(flat.end(), one.begin(), one.end());
    states.Expect(flat);
  }

  static constexpr double kFilling = 0.25;
  cudnnDropoutDescriptor_t dropout_ = nullptr;
  cudnnRNNDescriptor_t rnn_ = nullptr;
  cudnnRNNDataDescriptor_t x_desc_ = nullptr;
  cudnnRNNDataDescriptor_t y_desc_ = nullptr;
  std::optional<DeviceTensor> weights_;
};

class RecurrentGradientTest : public RecurrentTest {};  // in double: differences need it

const auto kName = [](const auto& info) { return std::string(info.param.name); };
constexpr auto kDouble = CUDNN_DATA_DOUBLE;
constexpr auto kBoth = CUDNN_BIDIRECTIONAL;
constexpr auto kTwoBiases = CUDNN_RNN_DOUBLE_BIAS;
const std::vector<int> kShorter = {5, 3, 1};

const Case kInDouble[] = {
    {"Double", CUDNN_LSTM, 2, kBoth, kDouble},
    {"Projection", CUDNN_LSTM, 2, kBoth, kDouble, kTwoBiases, 2},
    {"Packed", CUDNN_LSTM, 2, kBoth, kDouble, kTwoBiases, kHidden,
     CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, kShorter},
    {"Shorter",
     CUDNN_GRU,
     2,
     kBoth,
     kDouble,
     kTwoBiases,
     kHidden,
     CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED,
     {2, 5, 0}},
    {"BatchMajor", CUDNN_RNN_TANH, 2, kBoth, kDouble, kTwoBiases, kHidden,
     CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED, kShorter},
    {"ReluWithoutBias", CUDNN_RNN_RELU, 2, CUDNN_UNIDIRECTIONAL, kDouble, CUDNN_RNN_NO_BIAS},
    {"GruInputBias", CUDNN_GRU, 2, CUDNN_UNIDIRECTIONAL, kDouble, CUDNN_RNN_SINGLE_INP_BIAS},
    {"GruStateBias", CUDNN_GRU, 2, CUDNN_UNIDIRECTIONAL, kDouble, CUDNN_RNN_SINGLE_REC_BIAS},
};
const Case kInOthers[] = {
    {"Lstm"},
    {"Gru", CUDNN_GRU},
    {"Tanh", CUDNN_RNN_TANH},
    {"Relu", CUDNN_RNN_RELU},
    {"LstmLayers", CUDNN_LSTM, 3, kBoth},
    {"GruLayers", CUDNN_GRU, 2, kBoth},
    {"Half", CUDNN_GRU, 1, CUDNN_UNIDIRECTIONAL, CUDNN_DATA_HALF},
    {"Bfloat16", CUDNN_LSTM, 1, CUDNN_UNIDIRECTIONAL, CUDNN_DATA_BFLOAT16},
};
INSTANTIATE_TEST_SUITE_P(Double, RecurrentTest, testing::ValuesIn(kInDouble), kName);
INSTANTIATE_TEST_SUITE_P(Others, RecurrentTest, testing::ValuesIn(kInOthers), kName);
INSTANTIATE_TEST_SUITE_P(Double, RecurrentGradientTest, testing::ValuesIn(kInDouble), kName);

TEST_P(RecurrentTest, Inference) {
  DeviceTensor x(case_.type, {Rows(), kInput}, CUDNN_TENSOR_NCHW, 2);
  DeviceTensor y(case_.type, {Rows(), output_});
  DeviceTensor hx(case_.type, {pseudo_layers_, kBatch, case_.projection}, CUDNN_TENSOR_NCHW, 3);
  DeviceTensor hy(case_.type, {pseudo_layers_, kBatch, case_.projection});
  DeviceTensor cx(case_.type, {pseudo_layers_, kBatch, kHidden}, CUDNN_TENSOR_NCHW, 4);
  DeviceTensor cy(case_.type, {pseudo_layers_, kBatch, kHidden});
  const bool is_lstm = case_.cell == CUDNN_LSTM;
  const Results expected = Reference(case_, Parts(weights_->values()))
                               .Run(Sequences(x.values(), kInput),
                                    Cut(hx.values(), case_.projection), Cut(cx.values(), kHidden));
  ASSERT_DNN(cudnnRNNForward(handle_, rnn_, CUDNN_FWD_MODE_INFERENCE, nullptr, x_desc_, x.data(),
                             y_desc_, y.data(), hx.tensor(), hx.data(), hy.data(),
                             is_lstm ? cx.tensor() : nullptr, is_lstm ? cx.data() : nullptr,
                             is_lstm ? cy.data() : nullptr, WeightBytes(), weights_->data(), 0,
                             nullptr, 0, nullptr));
  Vector flat(y.values().size(), kFilling);
  for (int step = 0; step < kSteps; ++step) {
    for (int i = 0; i < kBatch; ++i) {
      const Vector& one = expected.y[Place(step, i)];
      std::copy(one.begin(), one.end(),
                flat.begin() + std::ptrdiff_t{std::max(0, RowOf(step, i))} * output_);
    }
  }
  y.Expect(flat);
  ExpectStates(hy, expected.h);
  if (is_lstm) ExpectStates(cy, expected.c);
}

TEST_P(RecurrentTest, StatesMayBeLeftOut) {
  DeviceTensor x(case_.type, {Rows(), kInput}, CUDNN_TENSOR_NCHW, 2);
  DeviceTensor y(case_.type, {Rows(), output_});
  DeviceTensor hy(case_.type, {pseudo_layers_, kBatch, case_.projection});
  const auto zeros = [&](int size) {
    return std::vector<Vector>(static_cast<std::size_t>(pseudo_layers_ * kBatch),
                               Vector(static_cast<std::size_t>(size)));
  };
  const Results expected =
      Reference(case_, Parts(weights_->values()))
          .Run(Sequences(x.values(), kInput), zeros(case_.projection), zeros(kHidden));
  ASSERT_DNN(cudnnRNNForward(handle_, rnn_, CUDNN_FWD_MODE_INFERENCE, nullptr, x_desc_, x.data(),
                             y_desc_, y.data(), hy.tensor(), nullptr, hy.data(), nullptr, nullptr,
                             nullptr, WeightBytes(), weights_->data(), 0, nullptr, 0, nullptr));
  ExpectStates(hy, expected.h);
}

// Of sum(a * y) + sum(b * hy) + sum(d * cy), for some a, b and d.
TEST_P(RecurrentGradientTest, OfDataAndWeights) {
  DeviceTensor x(case_.type, {Rows(), kInput}, CUDNN_TENSOR_NCHW, 2);
  DeviceTensor y(case_.type, {Rows(), output_});
  DeviceTensor dy(case_.type, {Rows(), output_}, CUDNN_TENSOR_NCHW, 5);
  DeviceTensor dx(case_.type, {Rows(), kInput});
  const Dims hidden = {pseudo_layers_, kBatch, case_.projection};
  DeviceTensor hx(case_.type, hidden, CUDNN_TENSOR_NCHW, 3);
  DeviceTensor dhy(case_.type, hidden, CUDNN_TENSOR_NCHW, 6);
  DeviceTensor dhx(case_.type, hidden);
  const Dims cell = {pseudo_layers_, kBatch, kHidden};
  DeviceTensor cx(case_.type, cell, CUDNN_TENSOR_NCHW, 4);
  DeviceTensor dcy(case_.type, cell, CUDNN_TENSOR_NCHW, 7);
  DeviceTensor dcx(case_.type, cell);
  DeviceTensor dw(case_.type, weights_->dims(), CUDNN_TENSOR_NCHW, 8);
  const Vector dw_before = dw.values();
  const bool is_lstm = case_.cell == CUDNN_LSTM;
  const auto of_lstm = [&](const DeviceTensor& t) { return is_lstm ? t.data() : nullptr; };
  std::size_t workspace = 0;
  std::size_t bytes = 0;
  ASSERT_DNN(cudnnGetRNNTempSpaceSizes(handle_, rnn_, CUDNN_FWD_MODE_TRAINING, x_desc_, &workspace,
                                       &bytes));
  DeviceTensor reserve(CUDNN_DATA_DOUBLE, {static_cast<int>(bytes / 8 + 1)});
  ASSERT_DNN(cudnnRNNForward(handle_, rnn_, CUDNN_FWD_MODE_TRAINING, nullptr, x_desc_, x.data(),
                             y_desc_, y.data(), hx.tensor(), hx.data(), nullptr, cx.tensor(),
                             of_lstm(cx), nullptr, WeightBytes(), weights_->data(), 0, nullptr,
                             bytes, reserve.data()));
  ASSERT_DNN(cudnnRNNBackwardData_v8(
      handle_, rnn_, nullptr, y_desc_, y.data(), dy.data(), x_desc_, dx.data(), hx.tensor(),
      hx.data(), dhy.data(), dhx.data(), cx.tensor(), of_lstm(cx), of_lstm(dcy), of_lstm(dcx),
      WeightBytes(), weights_->data(), 0, nullptr, bytes, reserve.data()));
  ASSERT_DNN(cudnnRNNBackwardWeights_v8(
      handle_, rnn_, CUDNN_WGRAD_MODE_ADD, nullptr, x_desc_, x.data(), hx.tensor(), hx.data(),
      y_desc_, y.data(), WeightBytes(), dw.data(), 0, nullptr, bytes, reserve.data()));
  Vector weights = weights_->values();
  const auto sum = [&] {
    const Results r = Reference(case_, Parts(weights))
                          .Run(Sequences(x.values(), kInput), Cut(hx.values(), case_.projection),
                               Cut(cx.values(), kHidden));
    double total = 0;
    const auto add = [&](const std::vector<Vector>& values, const std::vector<Vector>& factors) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        for (std::size_t j = 0; j < values[i].size(); ++j) total += values[i][j] * factors[i][j];
      }
    };
    add(r.y, Sequences(dy.values(), output_));
    add(r.h, Cut(dhy.values(), case_.projection));
    if (is_lstm) add(r.c, Cut(dcy.values(), kHidden));
    return total;
  };
  const auto expect_slopes = [&](Vector& of, DeviceTensor& gradient, const Vector& before) {
    gradient.Download();
    for (std::size_t i = 0; i < of.size(); ++i) {
      constexpr double kNear = 1e-6;
      const double value = of[i];
      of[i] = value + kNear;
      const double above = sum();
      of[i] = value - kNear;
      const double below = sum();
      of[i] = value;
      ASSERT_NEAR(gradient[i], (above - below) / (2 * kNear) + (before.empty() ? 0 : before[i]),
                  1e-7)
          << "element " << i;
    }
  };
  ASSERT_NO_FATAL_FAILURE(expect_slopes(hx.values(), dhx, {}));
  if (is_lstm) {
    ASSERT_NO_FATAL_FAILURE(expect_slopes(cx.values(), dcx, {}));
  }
  ASSERT_NO_FATAL_FAILURE(expect_slopes(x.values(), dx, {}));
  ASSERT_NO_FATAL_FAILURE(expect_slopes(weights, dw, dw_before));
}

// Two layers of an LSTM with dropout between them.
class DropoutTest : public DnnTest {
 protected:
  static constexpr int kWide = 64;

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(DnnTest::SetUp());
    std::size_t bytes = 0;
    ASSERT_DNN(cudnnDropoutGetStatesSize(handle_, &bytes));
    states_.emplace(CUDNN_DATA_DOUBLE, Dims{static_cast<int>(bytes / 8 + 1)});
    ASSERT_DNN(cudnnCreateDropoutDescriptor(&dropout_));
    ASSERT_DNN(cudnnCreateRNNDescriptor(&rnn_));
    ASSERT_DNN(cudnnCreateRNNDataDescriptor(&data_));
    const int lengths[] = {2, 2};
    ASSERT_DNN(cudnnSetRNNDataDescriptor(data_, CUDNN_DATA_FLOAT,
                                         CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, 2, 2, kWide,
                                         lengths, nullptr));
  }
  void TearDown() override {
    cudnnDestroyRNNDescriptor(rnn_);
    cudnnDestroyRNNDataDescriptor(data_);
    cudnnDestroyDropoutDescriptor(dropout_);
    states_.reset();
    DnnTest::TearDown();
  }

  void Describe(float probability, unsigned long long seed) {
    ASSERT_DNN(cudnnSetDropoutDescriptor(dropout_, handle_, probability, states_->data(),
                                         states_->values().size() * 8, seed));
    ASSERT_DNN(cudnnSetRNNDescriptor_v8(
        rnn_, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL,
        CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH, kWide, kWide,
        kWide, 2, dropout_, CUDNN_RNN_PADDED_IO_DISABLED));
  }
  Vector Forward(cudnnForwardMode_t mode) {
    std::size_t weights_bytes = 0;
    std::size_t workspace = 0;
    std::size_t bytes = 0;
    EXPECT_EQ(cudnnGetRNNWeightSpaceSize(handle_, rnn_, &weights_bytes), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnGetRNNTempSpaceSizes(handle_, rnn_, CUDNN_FWD_MODE_TRAINING, data_, &workspace,
                                        &bytes),
              CUDNN_STATUS_SUCCESS);
    const DeviceTensor weights(CUDNN_DATA_FLOAT, {static_cast<int>(weights_bytes / 4)},
                               CUDNN_TENSOR_NCHW, 1);
    const DeviceTensor x(CUDNN_DATA_FLOAT, {4, kWide}, CUDNN_TENSOR_NCHW, 2);
    DeviceTensor y(CUDNN_DATA_FLOAT, {4, kWide});
    const DeviceTensor reserve(CUDNN_DATA_FLOAT, {static_cast<int>(bytes / 4 + 1)});
    EXPECT_EQ(cudnnRNNForward(handle_, rnn_, mode, nullptr, data_, x.data(), data_, y.data(),
                              nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, weights_bytes,
                              weights.data(), 0, nullptr, bytes, reserve.data()),
              CUDNN_STATUS_SUCCESS);
    y.Download();
    return y.values();
  }

  std::optional<DeviceTensor> states_;
  cudnnDropoutDescriptor_t dropout_ = nullptr;
  cudnnRNNDescriptor_t rnn_ = nullptr;
  cudnnRNNDataDescriptor_t data_ = nullptr;
};

TEST_F(DropoutTest, IsOfTraining) {
  ASSERT_NO_FATAL_FAILURE(Describe(0, 1));
  const Vector plain = Forward(CUDNN_FWD_MODE_INFERENCE);
  EXPECT_EQ(Forward(CUDNN_FWD_MODE_TRAINING), plain) << "of probability 0";
  ASSERT_NO_FATAL_FAILURE(Describe(0.5f, 1));
  EXPECT_EQ(Forward(CUDNN_FWD_MODE_INFERENCE), plain);
  EXPECT_NE(Forward(CUDNN_FWD_MODE_TRAINING), plain);
}

TEST_F(DropoutTest, ASeedGivesTheSameAgain) {
  ASSERT_NO_FATAL_FAILURE(Describe(0.5f, 1));
  const Vector first = Forward(CUDNN_FWD_MODE_TRAINING);
  const Vector second = Forward(CUDNN_FWD_MODE_TRAINING);
  EXPECT_NE(first, second) << "the states go on";
  ASSERT_NO_FATAL_FAILURE(Describe(0.5f, 1));
  EXPECT_EQ(Forward(CUDNN_FWD_MODE_TRAINING), first);
  ASSERT_DNN(cudnnRestoreDropoutDescriptor(dropout_, handle_, 0.5f, states_->data(),
                                           states_->values().size() * 8, 0));
  EXPECT_EQ(Forward(CUDNN_FWD_MODE_TRAINING), second);
}

TEST_F(DropoutTest, EverythingMayBeDropped) {
  ASSERT_NO_FATAL_FAILURE(Describe(1, 1));
  for (const double value : Forward(CUDNN_FWD_MODE_TRAINING)) EXPECT_TRUE(std::isfinite(value));
}

// Bad calls of the layers that DropoutTest describes.
class RecurrentRefusalTest : public DropoutTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(DropoutTest::SetUp());
    ASSERT_NO_FATAL_FAILURE(Describe(0, 1));
    ASSERT_DNN(cudnnGetRNNWeightSpaceSize(handle_, rnn_, &weights_bytes_));
  }
  cudnnStatus_t Forward(cudnnForwardMode_t mode, std::size_t weights_bytes) {
    const DeviceTensor x(CUDNN_DATA_FLOAT, {4, kWide});
    return cudnnRNNForward(handle_, rnn_, mode, nullptr, data_, x.data(), data_, x.data(), nullptr,
                           nullptr, nullptr, nullptr, nullptr, nullptr, weights_bytes, x.data(), 0,
                           nullptr, 0, nullptr);
  }
  std::size_t weights_bytes_ = 0;
};

TEST_F(RecurrentRefusalTest, SpacesMustBeLargeEnough) {
  EXPECT_EQ(Forward(CUDNN_FWD_MODE_INFERENCE, weights_bytes_ - 1), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(Forward(CUDNN_FWD_MODE_TRAINING, weights_bytes_), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(RecurrentRefusalTest, WeightsOutsideOfTheDeviceAreNoticed) {
  EXPECT_EQ(Forward(CUDNN_FWD_MODE_INFERENCE, std::size_t{1} << 60),
            CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
}

TEST_F(RecurrentRefusalTest, UnpackedSequencesMustBeAskedFor) {
  const int lengths[] = {2, 2};
  ASSERT_DNN(cudnnSetRNNDataDescriptor(data_, CUDNN_DATA_FLOAT,
                                       CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, 2, 2, kWide,
                                       lengths, nullptr));
  EXPECT_EQ(Forward(CUDNN_FWD_MODE_INFERENCE, weights_bytes_), CUDNN_STATUS_NOT_SUPPORTED);
}

TEST_F(RecurrentRefusalTest, ThereAreNoOtherParameters) {
  DeviceTensor any(CUDNN_DATA_FLOAT, {1});
  const auto ask = [&](int layer, int number) {
    void* address = nullptr;
    return cudnnGetRNNWeightParams(handle_, rnn_, layer, weights_bytes_, any.data(), number,
                                   nullptr, &address, nullptr, nullptr);
  };
  EXPECT_EQ(ask(1, 7), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(ask(2, 0), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(ask(0, 8), CUDNN_STATUS_BAD_PARAM) << "without a projection";
}

}  // namespace
}  // namespace torpor::emulator
