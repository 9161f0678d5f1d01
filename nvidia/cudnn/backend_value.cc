#include <algorithm>
#include <optional>

#include "nvidia/cudnn/backend_descriptor.h"
#include "nvidia/cudnn/backend_library.h"
#include "nvidia/cudnn/graph_checks.h"
#include "nvidia/cudnn/operation_names.h"

// Values of finalised descriptors.
namespace torpor {
namespace {

DnnVerdict Bad(std::string what) { return {CUDNN_STATUS_BAD_PARAM, std::move(what)}; }
DnnVerdict Unsupported(std::string what) { return {CUDNN_STATUS_NOT_SUPPORTED, std::move(what)}; }
// The library itself reports reasons of interest: programs try its recommendations one after
// another.
DnnVerdict OfLibrary(cudnnStatus_t status) { return {status, {}}; }

std::int32_t Enumerator(const DnnBackendState& state, cudnnBackendAttributeName_t name,
                        std::int32_t otherwise) {
  return state.Get<std::int32_t>(name, otherwise);
}

// Returns the program's handle, or `otherwise` if the attribute is not set.
cudnnHandle_t HandleOf(const DnnBackendState& state, cudnnBackendAttributeName_t name,
                       cudnnHandle_t otherwise) {
  const auto given = state.Get<std::uint64_t>(name, 0);
  return given == 0 ? otherwise : reinterpret_cast<cudnnHandle_t>(given);
}

// False where an element does not fit.
bool ReadDims(const std::vector<std::int64_t>& given, DnnDims& dims) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    dims[i] = static_cast<std::int32_t>(given[i]);
    if (dims[i] != given[i]) return false;
  }
  return true;
}

DnnVerdict MakeTensor(DnnBackendState& state) {
  const auto dims = state.List<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto strides = state.List<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  if (dims.size() != strides.size())
    return Bad("a tensor has as many strides as dimensions, this one not");
  if (state.Get<std::int64_t>(CUDNN_ATTR_TENSOR_VECTOR_COUNT, 1) != 1 ||
      Enumerator(state, CUDNN_ATTR_TENSOR_REORDERING_MODE, CUDNN_TENSOR_REORDERING_NONE) !=
          CUDNN_TENSOR_REORDERING_NONE) {
    return Unsupported("tensors of vectors, and reordered ones, are not supported");
  }
  if (state.Get<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE, false))
    return Unsupported("tensors by value (CUDNN_ATTR_TENSOR_IS_BY_VALUE) are not supported");
  DnnGraphTensor tensor;
  tensor.shape.type = Enumerator(state, CUDNN_ATTR_TENSOR_DATA_TYPE, -1);
  tensor.shape.rank = static_cast<std::int32_t>(dims.size());
  if (!ReadDims(dims, tensor.shape.dims) || !ReadDims(strides, tensor.shape.strides))
    return Unsupported("dimensions and strides of 2^31 and more are not supported");
  tensor.id = state.Get<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
  tensor.alignment = state.Get<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0);
  tensor.is_virtual = state.Get<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL, false) ? 1 : 0;
  if (DnnTypeBytes(tensor.shape.type) == 0)
    return Unsupported("tensors whose elements are of type " + std::to_string(tensor.shape.type) +
                       " are not supported");
  if (!DnnIsValid(tensor))
    return Bad(
        "a tensor's dimensions are positive, its strides not negative, and its alignment a"
        " power of two; not so here");
  state.value = tensor;
  return {};
}

DnnVerdict MakeConvolution(DnnBackendState& state) {
  DnnGraphConvolution convolution;
  const auto rank = state.Get<std::int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0);
  bool fits = rank >= 1 &&
              DnnWindowIsValid(static_cast<std::int32_t>(std::min<std::int64_t>(rank, INT32_MAX)));
  const auto read = [&](cudnnBackendAttributeName_t name, DnnDims& dims) {
    const auto given = state.List<std::int64_t>(name);
    fits = fits && static_cast<std::int64_t>(given.size()) == rank && ReadDims(given, dims);
  };
  read(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, convolution.before);
  read(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, convolution.after);
  read(CUDNN_ATTR_CONVOLUTION_DILATIONS, convolution.dilation);
  read(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, convolution.strides);
  convolution.rank = static_cast<std::int32_t>(rank);
  convolution.mode = Enumerator(state, CUDNN_ATTR_CONVOLUTION_CONV_MODE, -1);
  convolution.compute_type = Enumerator(state, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, -1);
  if (!fits || !DnnIsValid(convolution))
    return Bad(
        "a convolution has paddings, dilations and strides for each of its dimensions, none"
        " negative; not so here");
  state.value = convolution;
  return {};
}

DnnVerdict MakePointwise(DnnBackendState& state) {
  DnnPointwise p;
  p.mode = Enumerator(state, CUDNN_ATTR_POINTWISE_MODE, -1);
  p.compute_type = Enumerator(state, CUDNN_ATTR_POINTWISE_MATH_PREC, -1);
  p.nan = Enumerator(state, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, p.nan);
  p.lower_clip = state.Number(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, p.lower_clip);
  p.upper_clip = state.Number(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, p.upper_clip);
  p.lower_clip_slope = state.Number(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, p.lower_clip_slope);
  p.elu_alpha = state.Number(CUDNN_ATTR_POINTWISE_ELU_ALPHA, p.elu_alpha);
  p.softplus_beta = state.Number(CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, p.softplus_beta);
  p.swish_beta = state.Number(CUDNN_ATTR_POINTWISE_SWISH_BETA, p.swish_beta);
  if (DnnOperands(p.mode) == 0)
    return Unsupported("the pointwise function " + std::to_string(p.mode) + " is not supported");
  if (!DnnIsValid(p)) return Bad("a pointwise function's precision is not valid");
  state.value = p;
  return {};
}

// Reads the tensor of a descriptor attribute; returns false if the attribute is not set.
bool ReadTensor(const DnnBackendState& state, cudnnBackendAttributeName_t name,
                DnnGraphTensor& tensor) {
  const auto* const found = state.Made<DnnGraphTensor>(name);
  if (found != nullptr) tensor = *found;
  return found != nullptr;
}

DnnVerdict MakeOperation(DnnBackendState& state) {
  const DnnOperationNames names = DnnNamesOf(state.kind());
  const bool is_convolution = DnnIsConvolution(state.kind());
  DnnBackendOperation made;
  DnnGraphOperation& operation = made.operation;
  operation.kind = state.kind();
  if (is_convolution)
    operation.convolution = *state.Made<DnnGraphConvolution>(names.function);
  else
    operation.pointwise = *state.Made<DnnPointwise>(names.function);
  ReadTensor(state, names.x, made.x);
  ReadTensor(state, names.y, made.y);
  made.has_w = ReadTensor(state, names.w, made.w);
  if (!is_convolution && made.has_w != (DnnOperands(operation.pointwise.mode) == 2))
    return Bad(
        "CUDNN_ATTR_OPERATION_POINTWISE_BDESC is set for functions of two operands only,"
        " and for those always");
  const double untouched_beta = is_convolution ? 0 : 1;
  operation.alpha = state.Number(names.alpha, 1);
  operation.beta = state.Number(names.beta, untouched_beta);
  for (const auto name : {names.alpha, names.beta}) {
    const DnnAttribute* const scalar = state.Find(name);
    if (scalar != nullptr && scalar->type == CUDNN_TYPE_DOUBLE)
      operation.scalar_type = CUDNN_TYPE_DOUBLE;
  }
  state.value = made;
  return {};
}

// Whether two descriptors describe one tensor.
bool IsSame(const DnnGraphTensor& a, const DnnGraphTensor& b) {
  return a.id == b.id && a.alignment == b.alignment && a.is_virtual == b.is_virtual &&
         a.shape.type == b.shape.type && a.shape.rank == b.shape.rank &&
         a.shape.dims == b.shape.dims && a.shape.strides == b.shape.strides;
}

// Returns the index of the tensor in the graph, after adding a new tensor. Returns nullopt if a
// different tensor has the same id.
std::optional<std::uint32_t> Place(DnnGraph& graph, const DnnGraphTensor& tensor) {
  const auto found =
      std::find_if(graph.tensors.begin(), graph.tensors.end(),
                   [&](const DnnGraphTensor& known) { return known.id == tensor.id; });
  const auto place = static_cast<std::uint32_t>(found - graph.tensors.begin());
  if (found == graph.tensors.end())
    graph.tensors.push_back(tensor);
  else if (!IsSame(*found, tensor))
    return std::nullopt;
  return place;
}

// Collects the operations' tensors into one graph and checks the whole.
DnnVerdict MakeGraph(DnnBackendState& state) {
  auto made = std::make_shared<DnnBackendGraph>();
  made->handle = HandleOf(state, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, nullptr);
  DnnGraph& graph = made->graph;
  for (const DnnBackendReference& one : state.Find(CUDNN_ATTR_OPERATIONGRAPH_OPS)->descriptors) {
    const auto& given = std::get<DnnBackendOperation>(one->value);
    const auto x = Place(graph, given.x);
    const auto w = given.has_w ? Place(graph, given.w) : kDnnNoTensor;
    const auto y = Place(graph, given.y);
    if (!x || !w || !y)
      return {CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES,
              "two tensors of an operation graph have one CUDNN_ATTR_TENSOR_UNIQUE_ID"};
    DnnGraphOperation& operation = graph.operations.emplace_back(given.operation);
    operation.x = *x;
    operation.w = *w;
    operation.y = *y;
  }
  if (const char* const fault = DnnFault(graph))
    return Bad(std::string("an operation graph: ") + fault);
  state.value = std::shared_ptr<const DnnBackendGraph>(std::move(made));
  return {};
}

// Makes a descriptor from the library's side, finalised from the start.
DnnBackendReference Given(DnnBackendState state, DnnBackendValue value) {
  state.value = std::move(value);
  state.Finish();
  return std::make_shared<const DnnBackendState>(std::move(state));
}

DnnBackendReference GivenKnobRange(const DnnKnobRange& range) {
  DnnBackendState state(CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR);
  const auto put = [&](cudnnBackendAttributeName_t name, std::int64_t number) {
    state.Put(name, CUDNN_TYPE_INT64, std::vector{number});
  };
  state.Put(CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE, std::vector{range.type});
  put(CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE, range.min);
  put(CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, range.max);
  put(CUDNN_ATTR_KNOB_INFO_STRIDE, range.step);
  return Given(std::move(state), {});
}

DnnBackendReference GivenKnob(const DnnKnob& knob) {
  DnnBackendState state(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  state.Put(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, std::vector{knob.type});
  state.Put(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, std::vector{knob.value});
  return Given(std::move(state), knob);
}

// Sets the attributes of an engine that the library describes.
void PutDescription(DnnBackendState& state, const DnnEngine& engine) {
  state.Put(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, engine.numerical_notes);
  state.Put(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, engine.behavior_notes);
  std::vector<DnnBackendReference> knobs(engine.knobs.size());
  std::transform(engine.knobs.begin(), engine.knobs.end(), knobs.begin(), GivenKnobRange);
  state.Put(CUDNN_ATTR_ENGINE_KNOB_INFO, std::move(knobs));
}

// `graph` is the descriptor for which the library made the choice.
DnnBackendReference GivenChoice(const DnnBackendReference& graph, const DnnEngineChoice& choice) {
  const auto& value = std::get<std::shared_ptr<const DnnBackendGraph>>(graph->value);
  DnnBackendState engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.Put(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, {graph});
  engine.Put(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, std::vector{choice.engine.engine});
  PutDescription(engine, choice.engine);
  DnnBackendState config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  config.Put(CUDNN_ATTR_ENGINECFG_ENGINE,
             {Given(std::move(engine), DnnBackendEngine{value, choice.engine.engine})});
  std::vector<DnnBackendReference> knobs(choice.knobs.size());
  std::transform(choice.knobs.begin(), choice.knobs.end(), knobs.begin(), GivenKnob);
  config.Put(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, std::move(knobs));
  return Given(std::move(config),
               DnnBackendConfig{value, {.engine = choice.engine.engine, .knobs = choice.knobs}});
}

// Asks the library for recommendations; the results are finalised configurations.
DnnVerdict MakeHeuristics(DnnBackendState& state) {
  const DnnBackendReference graph =
      state.Find(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)->descriptors.front();
  const auto& asked = *std::get<std::shared_ptr<const DnnBackendGraph>>(graph->value);
  const std::int32_t mode = Enumerator(state, CUDNN_ATTR_ENGINEHEUR_MODE, -1);
  if (mode < 0 || mode >= CUDNN_HEUR_MODES_COUNT) return Bad("a heuristic's mode is not known");
  std::vector<DnnEngineChoice> choices;
  const cudnnStatus_t status =
      DnnRecommend(asked.handle, asked.graph, static_cast<cudnnBackendHeurMode_t>(mode), choices);
  std::vector<DnnBackendReference> results;
  results.reserve(choices.size());
  for (const DnnEngineChoice& choice : choices) results.push_back(GivenChoice(graph, choice));
  state.Put(CUDNN_ATTR_ENGINEHEUR_RESULTS, std::move(results));
  return OfLibrary(status);
}

DnnVerdict MakeEngine(DnnBackendState& state) {
  const auto graph =
      *state.Made<std::shared_ptr<const DnnBackendGraph>>(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  const auto engine = state.Get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0);
  DnnEngine description;
  const cudnnStatus_t status = DnnDescribe(graph->handle, graph->graph, engine, description);
  if (status == CUDNN_STATUS_SUCCESS) PutDescription(state, description);
  state.value = DnnBackendEngine{graph, engine};
  return OfLibrary(status);
}

DnnVerdict MakeKnob(DnnBackendState& state) {
  state.value = DnnKnob{Enumerator(state, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, 0),
                        state.Get<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 0)};
  return {};
}

DnnVerdict MakeConfig(DnnBackendState& state) {
  const auto& engine = *state.Made<DnnBackendEngine>(CUDNN_ATTR_ENGINECFG_ENGINE);
  DnnBackendConfig made{engine.graph, {.engine = engine.engine}};
  if (const DnnAttribute* const knobs = state.Find(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES)) {
    made.config.knobs.reserve(knobs->descriptors.size());
    for (const DnnBackendReference& knob : knobs->descriptors)
      made.config.knobs.push_back(std::get<DnnKnob>(knob->value));
  }
  if (!DnnIsValid(made.config)) return Bad("an engine's number is negative, or its knobs too many");
  state.value = std::move(made);
  return {};
}

// Asks the library whether the configuration works, and for the workspace.
DnnVerdict MakePlan(DnnBackendState& state) {
  const auto& config = *state.Made<DnnBackendConfig>(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  DnnBackendPlan made{config.graph, config.config};
  const cudnnHandle_t handle =
      HandleOf(state, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, config.graph->handle);
  const cudnnStatus_t status =
      DnnPlan(handle, made.graph->graph, made.config, made.workspace_bytes);
  state.Put(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
            std::vector{static_cast<std::int64_t>(made.workspace_bytes)});
  state.value = std::move(made);
  return OfLibrary(status);
}

DnnVerdict MakeVariantPack(DnnBackendState& state) {
  DnnVariantPack made;
  made.ids = state.List<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  made.addresses = state.List<std::uint64_t>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  made.workspace = state.Get<std::uint64_t>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 0);
  if (made.ids.size() != made.addresses.size())
    return Bad("a variant pack has as many pointers as ids, this one not");
  std::vector<std::int64_t> sorted = made.ids;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return {CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, "a variant pack has an id twice"};
  state.value = std::move(made);
  return {};
}

const DnnBackendState* FinalState(cudnnBackendDescriptor_t descriptor) {
  if (descriptor == nullptr) return nullptr;
  const DnnBackendState& state = *static_cast<const DnnBackendDescriptor*>(descriptor)->state;
  return state.is_final() ? &state : nullptr;
}

}  // namespace

DnnVerdict DnnMakeValue(DnnBackendState& state) {
  switch (state.kind()) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return MakeTensor(state);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return MakeConvolution(state);
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
      return MakePointwise(state);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return MakeOperation(state);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return MakeGraph(state);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return MakeHeuristics(state);
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      return MakeEngine(state);
    case CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR:
      return MakeKnob(state);
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      return MakeConfig(state);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return MakePlan(state);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return MakeVariantPack(state);
    default:
      return Unsupported("descriptors of this kind are not finalized by programs");
  }
}

DnnVerdict DnnReadExecution(cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack,
                            DnnExecution& execution) {
  const DnnBackendState* const plan_state = FinalState(plan);
  const DnnBackendState* const pack_state = FinalState(pack);
  if (plan_state == nullptr || pack_state == nullptr)
    return {CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
            "a plan and a variant pack are needed, both finalized"};
  execution.plan = std::get_if<DnnBackendPlan>(&plan_state->value);
  const auto* const given = std::get_if<DnnVariantPack>(&pack_state->value);
  if (execution.plan == nullptr || given == nullptr)
    return {CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "a plan and a variant pack are needed"};
  const std::vector<DnnGraphTensor>& tensors = execution.plan->graph->graph.tensors;
  execution.addresses.assign(tensors.size(), 0);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].is_virtual != 0) continue;
    const auto found = std::find(given->ids.begin(), given->ids.end(), tensors[i].id);
    const std::uint64_t address =
        found == given->ids.end()
            ? 0
            : given->addresses[static_cast<std::size_t>(found - given->ids.begin())];
    if (address == 0)
      return {CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
              "a variant pack has no pointer for the tensor " + std::to_string(tensors[i].id)};
    if (address % static_cast<std::uint64_t>(tensors[i].alignment) != 0)
      return {CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
              "a pointer of a variant pack is not aligned as the tensor " +
                  std::to_string(tensors[i].id) + " says"};
    execution.addresses[i] = address;
  }
  execution.workspace = execution.plan->workspace_bytes == 0 ? 0 : given->workspace;
  if (execution.plan->workspace_bytes > 0 && execution.workspace == 0)
    return {CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "a variant pack lacks the workspace of the plan"};
  return {};
}

}  // namespace torpor
