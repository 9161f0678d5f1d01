#include "emulator/dnn/recurrent.h"

#include <algorithm>
#include <random>
#include <type_traits>
#include <utility>

#include "emulator/blas/openblas.h"
#include "emulator/dnn/recurrent_cells.h"
#include "emulator/dnn/recurrent_weights.h"

namespace torpor::emulator {
namespace {

// By rows.
template <typename T>
struct Matrix {
  T* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;

  T* operator[](std::size_t row) const { return data + row * columns; }
  operator Matrix<const T>() const requires(!std::is_const_v<T>) {  // NOLINT: as of a pointer
    return {data, rows, columns};
  }
};

// c += op(a) * op(b).
template <typename T>
void AddProduct(CBLAS_TRANSPOSE op_a, Matrix<const T> a, CBLAS_TRANSPOSE op_b, Matrix<const T> b,
                Matrix<T> c) {
  const auto size = [](std::size_t value) { return static_cast<int>(value); };
  const std::size_t inner = op_a == CblasNoTrans ? a.columns : a.rows;
  OpenBlas<T>::gemm(CblasRowMajor, op_a, op_b, size(c.rows), size(c.columns), size(inner), T(1),
                    a.data, size(a.columns), b.data, size(b.columns), T(1), c.data,
                    size(c.columns));
}

// Sets every row to `row`, a bias, or to zeros for null.
template <typename T>
void SetRows(Matrix<T> to, const T* row) {
  for (std::size_t i = 0; i < to.rows; ++i) {
    if (row == nullptr) {
      std::fill_n(to[i], to.columns, T(0));
    } else {
      std::copy_n(row, to.columns, to[i]);
    }
  }
}

// Adds all rows to `row`, the gradient of a bias; null means that there is none.
template <typename T>
void AddRows(Matrix<const T> from, T* row) {
  if (row == nullptr) return;
  for (std::size_t i = 0; i < from.rows; ++i) {
    for (std::size_t j = 0; j < from.columns; ++j) row[j] += from[i][j];
  }
}

// A matrix with memory of its own, initially zero.
template <typename T>
class OwnMatrix {
 public:
  OwnMatrix(std::size_t rows, std::size_t columns)
      : values_(rows * columns), rows_(rows), columns_(columns) {}
  Matrix<T> get() { return {values_.data(), rows_, columns_}; }

 private:
  std::vector<T> values_;
  std::size_t rows_;
  std::size_t columns_;
};

// The parameters of one pseudo layer, or their gradients.
template <typename T>
struct Parameters {
  Parameters(const RecurrentWeights& w, std::size_t p, T* all)
      : inputs{all + w.InputMatrices(p), w.rows(), w.InputSize(p / w.directions())},
        states{all + w.StateMatrices(p), w.rows(), w.projection()},
        projection{all + w.ProjectionMatrix(p), w.projection(), w.hidden()},
        input_biases(w.has_input_biases() ? all + w.InputBiases(p) : nullptr),
        state_biases(w.has_state_biases() ? all + w.StateBiases(p) : nullptr) {}

  Matrix<T> inputs;
  Matrix<T> states;
  Matrix<T> projection;
  T* input_biases;
  T* state_biases;
};

// The states of one pseudo layer; a row for each sequence.
template <typename T>
struct States {
  Matrix<T> hidden;
  Matrix<T> cell;  // without data where cells have none
};

// One pseudo layer. In matrices of sequences a row is a vector, ordered by step.
template <typename T>
class PseudoLayer {
 public:
  PseudoLayer(const DnnRnnShapes& s, const RecurrentWeights& places, std::size_t p,
              const T* weights)
      : rnn_(s.rnn),
        lengths_(s.x.lengths),
        places_(places),
        weights_(places, p, weights),
        direction_(p % places.directions()),
        steps_(static_cast<std::size_t>(s.x.max_steps)),
        batch_(static_cast<std::size_t>(s.x.batch)) {}

  // Replaces the states by the final states, and writes this direction's part of y.
  void Forward(Matrix<const T> x, States<T> states, Matrix<T> y, DirectionTrace<T>& trace) const {
    const Matrix<T> gates = Room(trace.gates, places_.rows());
    if (rnn_.cell == CUDNN_LSTM) Room(trace.cells, places_.hidden());
    if (rnn_.cell == CUDNN_GRU) Room(trace.candidates, places_.hidden());
    SetRows(gates, weights_.input_biases);
    AddProduct<T>(CblasNoTrans, x, CblasTrans, weights_.inputs, gates);
    OwnMatrix<T> from_state(batch_, places_.rows());
    OwnMatrix<T> hidden(batch_, places_.hidden());
    OwnMatrix<T> projected(batch_, places_.projection());
    for (std::size_t k = 0; k < steps_; ++k) {
      const std::size_t step = StepAt(k);
      SetRows(from_state.get(), weights_.state_biases);
      AddProduct<T>(CblasNoTrans, states.hidden, CblasTrans, weights_.states, from_state.get());
      ForEachAt(step, [&](std::size_t i, std::size_t row) {
        Step(gates[row], from_state.get()[i], i, row, states, trace, hidden.get()[i]);
      });
      if (DnnHasProjection(rnn_)) {
        SetRows<T>(projected.get(), nullptr);
        AddProduct<T>(CblasNoTrans, hidden.get(), CblasTrans, weights_.projection, projected.get());
      }
      const Matrix<T> out = DnnHasProjection(rnn_) ? projected.get() : hidden.get();
      ForEachAt(step, [&](std::size_t i, std::size_t row) {
        std::copy_n(out[i], out.columns, states.hidden[i]);
        std::copy_n(out[i], out.columns, PartOf(y[row]));
      });
    }
  }

  // Replaces `d_states`, the gradient of the final states, by the gradient of the initial states.
  // Adds to `d_x` and to the parameters' gradients.
  void Backward(Matrix<const T> x, States<const T> given, Matrix<const T> y,
                const DirectionTrace<T>& trace, Matrix<const T> d_y, States<T> d_states,
                Matrix<T> d_x, Parameters<T> gradients) const {
    const std::size_t rows = steps_ * batch_;
    OwnMatrix<T> before(rows, places_.projection());  // the hidden state before each step
    for (std::size_t step = 0; step < steps_; ++step) {
      ForEachAt(step, [&](std::size_t i, std::size_t row) {
        std::copy_n(HiddenBefore(step, i, given, y), places_.projection(), before.get()[row]);
      });
    }
    OwnMatrix<T> slopes(rows, places_.rows());
    OwnMatrix<T> state_slopes(rnn_.cell == CUDNN_GRU ? rows : 0, places_.rows());
    const Matrix<T> of_state = rnn_.cell == CUDNN_GRU ? state_slopes.get() : slopes.get();
    for (std::size_t k = steps_; k-- > 0;) {
      const std::size_t step = StepAt(k);
      ForEachAt(step, [&](std::size_t i, std::size_t row) {
        const T* const from = PartOf(d_y[row]);
        for (std::size_t j = 0; j < places_.projection(); ++j) d_states.hidden[i][j] += from[j];
      });
      OwnMatrix<T> d_hidden = OfHidden(step, trace, d_states.hidden, gradients);
      ForEachAt(step, [&](std::size_t i, std::size_t row) {
        std::fill_n(d_states.hidden[i], places_.projection(), T(0));
        Slopes(step, i, row, trace, given, before.get()[row], d_hidden.get()[i], d_states,
               slopes.get()[row], of_state[row]);
      });
      // The slopes of finished sequences are zero.
      AddProduct<T>(CblasNoTrans, Matrix<T>{of_state[step * batch_], batch_, places_.rows()},
                    CblasNoTrans, weights_.states, d_states.hidden);
    }
    AddProduct<T>(CblasTrans, of_state, CblasNoTrans, before.get(), gradients.states);
    AddProduct<T>(CblasTrans, slopes.get(), CblasNoTrans, x, gradients.inputs);
    AddRows<T>(of_state, gradients.state_biases);
    AddRows<T>(slopes.get(), gradients.input_biases);
    AddProduct<T>(CblasNoTrans, slopes.get(), CblasNoTrans, weights_.inputs, d_x);
  }

 private:
  // Makes `values` a matrix with a row for each vector of the sequences.
  Matrix<T> Room(std::vector<T>& values, std::size_t columns) const {
    values.assign(steps_ * batch_ * columns, T(0));
    return {values.data(), steps_ * batch_, columns};
  }
  bool is_backwards() const { return direction_ == 1; }
  std::size_t StepAt(std::size_t k) const { return is_backwards() ? steps_ - 1 - k : k; }
  std::size_t LengthOf(std::size_t i) const { return static_cast<std::size_t>(lengths_[i]); }
  // This direction's part of a vector of y.
  template <typename U>
  U* PartOf(U* vector) const {
    return vector + direction_ * places_.projection();
  }

  // Calls visit(sequence, row of its vector) for the sequences that reach `step`.
  template <typename Visit>
  void ForEachAt(std::size_t step, Visit visit) const {
    for (std::size_t i = 0; i < batch_; ++i) {
      if (step < LengthOf(i)) visit(i, step * batch_ + i);
    }
  }
  // Whether the cell of sequence `i` starts from the initial state at this step.
  bool IsFirst(std::size_t step, std::size_t i) const {
    return is_backwards() ? step + 1 == LengthOf(i) : step == 0;
  }
  std::size_t RowBefore(std::size_t step, std::size_t i) const {
    return (is_backwards() ? step + 1 : step - 1) * batch_ + i;
  }
  const T* HiddenBefore(std::size_t step, std::size_t i, const States<const T>& given,
                        Matrix<const T> y) const {
    return IsFirst(step, i) ? given.hidden[i] : PartOf(y[RowBefore(step, i)]);
  }
  const T* CellBefore(std::size_t step, std::size_t i, const States<const T>& given,
                      const DirectionTrace<T>& trace) const {
    return IsFirst(step, i) ? given.cell[i]
                            : trace.cells.data() + RowBefore(step, i) * places_.hidden();
  }

  // One step of the cell of one sequence; the trace keeps the values for the gradient.
  void Step(T* gates, const T* from_state, std::size_t i, std::size_t row, const States<T>& states,
            DirectionTrace<T>& trace, T* hidden) const {
    const std::size_t n = places_.hidden();
    switch (rnn_.cell) {
      case CUDNN_LSTM:
        LstmStep(n, gates, from_state, states.cell[i], hidden);
        std::copy_n(states.cell[i], n, trace.cells.data() + row * n);
        break;
      case CUDNN_GRU:
        GruStep(n, gates, from_state, states.hidden[i], trace.candidates.data() + row * n, hidden);
        break;
      default:
        PlainStep(n, rnn_.cell == CUDNN_RNN_RELU, gates, from_state, hidden);
    }
  }

  // Returns the gradient of the cells' output before the projection.
  OwnMatrix<T> OfHidden(std::size_t step, const DirectionTrace<T>& trace, Matrix<T> d_out,
                        const Parameters<T>& gradients) const {
    const std::size_t n = places_.hidden();
    OwnMatrix<T> d_hidden(batch_, n);
    if (!DnnHasProjection(rnn_)) {
      std::copy_n(d_out.data, batch_ * n, d_hidden.get().data);
      return d_hidden;
    }
    OwnMatrix<T> hidden(batch_, n);  // of sequences that have ended: zeros
    ForEachAt(step, [&](std::size_t i, std::size_t row) {
      const T* const output = trace.gates.data() + row * places_.rows() + 3 * n;
      const T* const cell = trace.cells.data() + row * n;
      for (std::size_t j = 0; j < n; ++j) hidden.get()[i][j] = output[j] * std::tanh(cell[j]);
    });
    AddProduct<T>(CblasTrans, d_out, CblasNoTrans, hidden.get(), gradients.projection);
    AddProduct<T>(CblasNoTrans, d_out, CblasNoTrans, weights_.projection, d_hidden.get());
    return d_hidden;
  }

  // The gradient of one step of one sequence.
  void Slopes(std::size_t step, std::size_t i, std::size_t row, const DirectionTrace<T>& trace,
              const States<const T>& given, const T* before, const T* d_hidden,
              const States<T>& d_states, T* slopes, T* state_slopes) const {
    const std::size_t n = places_.hidden();
    const T* const gates = trace.gates.data() + row * places_.rows();
    switch (rnn_.cell) {
      case CUDNN_LSTM:
        return LstmSlopes(n, gates, trace.cells.data() + row * n, CellBefore(step, i, given, trace),
                          d_hidden, d_states.cell[i], slopes);
      case CUDNN_GRU:
        return GruSlopes(n, gates, trace.candidates.data() + row * n, before, d_hidden, slopes,
                         state_slopes, d_states.hidden[i]);
      default:
        return PlainSlopes(n, rnn_.cell == CUDNN_RNN_RELU, gates, d_hidden, slopes);
    }
  }

  const DnnRnn& rnn_;
  const std::vector<std::int32_t>& lengths_;
  const RecurrentWeights& places_;
  const Parameters<const T> weights_;
  const std::size_t direction_;
  const std::size_t steps_;
  const std::size_t batch_;
};

// All layers' sizes.
struct Shape {
  explicit Shape(const DnnRnnShapes& s)
      : places(s.rnn),
        layers(static_cast<std::size_t>(s.rnn.layers)),
        batch(static_cast<std::size_t>(s.x.batch)),
        vectors(static_cast<std::size_t>(s.x.max_steps) * batch) {}

  std::size_t output_size() const { return places.projection() * places.directions(); }
  // The states of pseudo layer `p` among all states.
  template <typename T, typename Values>
  States<T> StatesOf(std::size_t p, Values& values) const {
    const std::size_t hidden = batch * places.projection();
    const std::size_t cell = batch * places.hidden();
    return {
        {values.hidden.data() + p * hidden, batch, places.projection()},
        {values.cell.empty() ? nullptr : values.cell.data() + p * cell, batch, places.hidden()}};
  }

  const RecurrentWeights places;
  const std::size_t layers;
  const std::size_t batch;
  const std::size_t vectors;
};

// Multiplies `values` by random factors, 0 or 1 / (1 - probability), and returns the factors.
template <typename T>
std::vector<T> DropOut(double probability, std::mt19937_64& random, std::vector<T>& values) {
  std::vector<T> scales(values.size());
  std::bernoulli_distribution is_dropped(probability);
  for (std::size_t i = 0; i < values.size(); ++i) {
    scales[i] = is_dropped(random) ? T(0) : static_cast<T>(1 / (1 - probability));
    values[i] *= scales[i];
  }
  return scales;
}

}  // namespace

// Layers run one after another; the output of a layer, after dropout, is the next layer's input.
template <typename T>
RecurrentValues<T> RecurrentForward(const DnnRnnShapes& shapes, const std::vector<T>& weights,
                                    const RecurrentValues<T>& given, std::uint64_t seed,
                                    std::vector<LayerTrace<T>>* traces) {
  const Shape shape(shapes);
  const double probability = shapes.rnn.dropout.probability;
  std::mt19937_64 random(seed);
  RecurrentValues<T> values = given;
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    LayerTrace<T> trace;
    trace.x = std::move(values.sequences);
    trace.y.resize(shape.vectors * shape.output_size());
    for (std::size_t d = 0; d < shape.places.directions(); ++d) {
      const std::size_t p = layer * shape.places.directions() + d;
      PseudoLayer<T>(shapes, shape.places, p, weights.data())
          .Forward({trace.x.data(), shape.vectors, shape.places.InputSize(layer)},
                   shape.StatesOf<T>(p, values),
                   {trace.y.data(), shape.vectors, shape.output_size()},
                   trace.directions.emplace_back());
    }
    values.sequences = trace.y;
    if (probability > 0 && layer + 1 < shape.layers)
      trace.scales = DropOut(probability, random, values.sequences);
    if (traces != nullptr) traces->push_back(std::move(trace));
  }
  return values;
}

// Layers run in reverse order, from the traces of the forward pass.
template <typename T>
RecurrentValues<T> RecurrentBackward(const DnnRnnShapes& shapes, const std::vector<T>& weights,
                                     const RecurrentValues<T>& given,
                                     const std::vector<LayerTrace<T>>& traces,
                                     const RecurrentValues<T>& gradients,
                                     std::vector<T>& weight_gradients) {
  const Shape shape(shapes);
  RecurrentValues<T> values = gradients;
  for (std::size_t layer = shape.layers; layer-- > 0;) {
    const LayerTrace<T>& trace = traces[layer];
    const std::size_t input_size = shape.places.InputSize(layer);
    for (std::size_t i = 0; i < trace.scales.size(); ++i) values.sequences[i] *= trace.scales[i];
    std::vector<T> d_x(shape.vectors * input_size);
    for (std::size_t d = 0; d < shape.places.directions(); ++d) {
      const std::size_t p = layer * shape.places.directions() + d;
      PseudoLayer<T>(shapes, shape.places, p, weights.data())
          .Backward({trace.x.data(), shape.vectors, input_size}, shape.StatesOf<const T>(p, given),
                    {trace.y.data(), shape.vectors, shape.output_size()}, trace.directions[d],
                    {values.sequences.data(), shape.vectors, shape.output_size()},
                    shape.StatesOf<T>(p, values), {d_x.data(), shape.vectors, input_size},
                    {shape.places, p, weight_gradients.data()});
    }
    values.sequences = std::move(d_x);
  }
  return values;
}

template RecurrentValues<float> RecurrentForward(const DnnRnnShapes&, const std::vector<float>&,
                                                 const RecurrentValues<float>&, std::uint64_t,
                                                 std::vector<LayerTrace<float>>*);
template RecurrentValues<float> RecurrentBackward(const DnnRnnShapes&, const std::vector<float>&,
                                                  const RecurrentValues<float>&,
                                                  const std::vector<LayerTrace<float>>&,
                                                  const RecurrentValues<float>&,
                                                  std::vector<float>&);
template RecurrentValues<double> RecurrentForward(const DnnRnnShapes&, const std::vector<double>&,
                                                  const RecurrentValues<double>&, std::uint64_t,
                                                  std::vector<LayerTrace<double>>*);
template RecurrentValues<double> RecurrentBackward(const DnnRnnShapes&, const std::vector<double>&,
                                                   const RecurrentValues<double>&,
                                                   const std::vector<LayerTrace<double>>&,
                                                   const RecurrentValues<double>&,
                                                   std::vector<double>&);

}  // namespace torpor::emulator
