#pragma once

#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "emulator/exec/codegen/unit.h"
#include "emulator/exec/interface/warp_context.h"
#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/fragment_slots.h"
#include "emulator/ptx/lane_analysis.h"
#include "emulator/ptx/matrix.h"

namespace torpor::emulator {

// Translates one PTX function: every value is a vector of 32 lanes, or the scalar of lane 0
// where the analysis found the lanes linear. Methods are grouped by source file; one file an
// instruction family.
class FunctionEmitter {
 public:
  FunctionEmitter(Unit& unit, std::uint32_t index, llvm::Function* target);
  void Emit();

 private:
  using Instruction = ptx::Instruction;
  using Operand = ptx::Operand;
  using Type = ptx::Type;
  using Modifier = ptx::Modifier;
  using Value = llvm::Value;

  // function_emitter.cc: set-up, dispatch, errors.
  void CreateSlots();
  void CreateRegisterSlots();
  void EmitBlock(std::uint32_t block);
  void EmitInstruction(const Instruction& instruction);
  bool EmitArithmeticFamily(const Instruction& instruction);
  bool EmitBitFamily(const Instruction& instruction);
  bool EmitMemoryFamily(const Instruction& instruction);
  bool EmitImageFamily(const Instruction& instruction);
  bool EmitWarpFamily(const Instruction& instruction);
  bool EmitMatrixFamily(const Instruction& instruction);
  void Unsupported(const Instruction& instruction, const std::string& why = "");
  std::uint32_t IndexOf(const Instruction& instruction) const {
    return static_cast<std::uint32_t>(&instruction - function_.instructions.data());
  }
  bool Expect(const Instruction& instruction, std::size_t operands);

  // values.cc: reading and writing registers.
  llvm::Type* ScalarType(Type type);
  llvm::Type* IntType(unsigned bits) { return b_.getIntNTy(bits); }
  llvm::Type* Shaped(llvm::Type* scalar) { return scalar_ ? scalar : Lanes(scalar); }
  llvm::Type* Lanes(llvm::Type* scalar);
  static unsigned Bits(const Value* value);
  static bool IsVector(const Value* value) { return value->getType()->isVectorTy(); }
  Value* Constant(llvm::Type* type, std::uint64_t bits);
  Value* Like(const Value* shape, std::uint64_t bits);  // an integer constant of the same type
  Value* ToInt(Value* value);                           // bit cast
  Value* ToFloat(Value* value);
  Value* Resize(Value* value, unsigned bits, bool is_signed);
  Value* Spread(Value* scalar, std::int64_t stride = 0,
                std::int64_t row_stride = 0);  // to 32 lanes
  Value* Vector(Value* value) { return IsVector(value) ? value : Spread(value); }
  Value* ReadRegister(std::uint32_t reg, bool scalar);
  Value* ReadScalar(const Operand& operand, Type type);  // lane 0
  Value* Read(const Operand& operand, Type type);        // scalar or vector as scalar_ says
  Value* ReadVector(const Operand& operand, Type type);
  Value* ReadSpecial(const Operand& operand, bool scalar);
  Value* ReadUniform(const Operand& operand);
  Value* LaneMasks(ptx::SpecialRegister special);
  Value* ReadThreadIndex(unsigned axis, bool scalar);
  Value* ReadSymbol(const Operand& operand, bool scalar);
  Value* Immediate(const Operand& operand, Type type);
  Value* ReadAny(const Operand& operand, Type type, bool scalar);
  // `value` is lane 0's if scalar; `result_` then tells the other lanes'.
  void Write(const Instruction& instruction, const Operand& destination, Value* value, Type type);
  void WriteRegister(const Instruction& instruction, std::uint32_t reg, Value* value);

  // control.cc: masks and branches.
  Value* MaskBits(Value* mask);
  Value* BitsToMask(Value* bits);
  Value* AnyLane(Value* mask);
  Value* AllLanes();
  Value* GuardVector(const Instruction& instruction);
  Value* ActiveMask(const Instruction& instruction);  // the block's lanes whose guard holds
  void EmitTerminator(std::uint32_t block);
  void EmitWarpBarrierEnd(std::uint32_t block);
  Value* LanesOnTheirWay(const ptx::BitSet& blocks);
  Value* IsReady(std::uint32_t block, Value* on_their_way);
  void SendLanes(std::uint32_t from, const std::vector<std::pair<std::uint32_t, Value*>>& lanes);
  void RunNext(std::uint32_t from, const std::vector<std::uint32_t>& targets);
  llvm::BasicBlock* EdgeTo(std::uint32_t from, std::uint32_t to, const ptx::BitSet& waiting);
  void EmitConditional(std::uint32_t block, const Instruction& branch);
  void EmitConditionalExit(std::uint32_t block, const Instruction& branch);
  void EmitIndexed(std::uint32_t block, const Instruction& branch);
  void EmitReturn();
  void EmitCallThatEndsThreads(std::uint32_t block, const Instruction& call);
  void RecordEnd(const Instruction& branch, Value* lanes);
  void RecordEnd(Value* lanes);
  llvm::BasicBlock* NewBlock(const char* name);
  void ReloadMask();  // where the way to here has left the block
  // Runs `body` where some lane of `mask` is active; `mask` constant true costs nothing.
  void IfAny(Value* mask, const std::function<void()>& body);
  void ForEachLane(Value* mask, const std::function<void(Value* lane)>& body);
  Value* LaneArray(llvm::Type* element);  // [32 x element] on the stack
  Value* Spill(Value* vector);            // a vector into such an array
  Value* LaneSlot(Value* array, llvm::Type* element, Value* lane);
  Value* Unspill(Value* array, llvm::Type* element);

  // resume.cc
  struct WarpState {
    std::vector<llvm::AllocaInst*> slots;
    std::vector<const Instruction*> origins;  // of registers that are computed anew
  };
  bool resumable() const { return function_.is_kernel && unit_.layout().resumable; }
  void EnterKernel();
  const Instruction* Origin(std::uint32_t reg) const;
  WarpState StateAt(std::uint32_t block, std::uint32_t end) const;
  void MoveState(const WarpState& state, bool save);
  void LeaveUnless(Value* goes_on, const WarpState& state, llvm::BasicBlock* next);
  void WaitUnless(Value* goes_on, const Instruction& at);
  void WaitBefore(std::uint32_t to, Value* goes_on);
  void TakeTurns(std::uint32_t header, std::uint32_t stride);

  // context.cc: fields of WarpContext and calls of the runtime.
  Value* ContextField(std::size_t offset, llvm::Type* type, bool invariant = true);
  Value* CallRuntime(std::size_t offset, llvm::Type* result, const std::vector<Value*>& arguments);

  // integer.cc
  void EmitAddSub(const Instruction& instruction);
  void EmitCarry(const Instruction& instruction);
  void EmitMul(const Instruction& instruction);
  void EmitMad(const Instruction& instruction);
  void EmitMul24(const Instruction& instruction);
  void EmitDivRem(const Instruction& instruction);
  void EmitMinMax(const Instruction& instruction);
  void EmitIntegerPair(const Instruction& instruction);
  Value* IntegerExtreme(const Instruction& instruction, Value* a, Value* b);
  void EmitAbsNeg(const Instruction& instruction);
  void EmitSad(const Instruction& instruction);
  void EmitDotProduct(const Instruction& instruction);
  Value* Product(const Instruction& instruction, Value* a, Value* b);
  Value* Divide(Value* a, Value* b, bool is_signed, bool remainder);
  Value* DivideNarrow(Value* a, Value* b, bool is_signed, bool remainder);

  // bits.cc
  void EmitLogic(const Instruction& instruction);
  void EmitShift(const Instruction& instruction);
  void EmitFunnelShift(const Instruction& instruction);
  void EmitLop3(const Instruction& instruction);
  void EmitCount(const Instruction& instruction);
  void EmitBitField(const Instruction& instruction);
  void EmitFindBit(const Instruction& instruction);
  void EmitMask(const Instruction& instruction);
  void EmitPermute(const Instruction& instruction);
  void EmitSignExtend(const Instruction& instruction);
  void EmitFindNth(const Instruction& instruction);
  Value* ClampedShift(Value* value, Value* amount, llvm::Instruction::BinaryOps op);
  Value* PermuteSelector(const Instruction& instruction, Value* control, unsigned byte);

  // floating.cc
  void EmitFloat(const Instruction& instruction);
  void EmitFloatMinMax(const Instruction& instruction);
  void EmitFma(const Instruction& instruction);
  void EmitSpecial(const Instruction& instruction);
  void EmitTestProperty(const Instruction& instruction);
  void EmitCopySign(const Instruction& instruction);
  bool IsRounded(const Instruction& instruction) const;  // not to nearest even
  Rounding RoundingOf(const Instruction& instruction) const;
  Value* Rounded(const Instruction& instruction, RoundedOperation operation,
                 const std::vector<Value*>& inputs, Type result);
  Value* Extreme(const Instruction& instruction, bool minimum, Value* a, Value* b);
  Value* Flush(const Instruction& instruction, Value* value);     // subnormals, if .ftz
  Value* Saturate(const Instruction& instruction, Value* value);  // to [0, 1], if .sat
  Value* ReadFloat(const Instruction& instruction, const Operand& operand);
  void WriteFloat(const Instruction& instruction, Value* value);
  Value* Intrinsic(llvm::Intrinsic::ID id, const std::vector<Value*>& arguments);

  // half.cc: 16-bit floating point, alone or in pairs; computed as f32 or f64.
  static bool IsHalf(Type type);
  static bool IsHalfPair(Type type);
  bool EmitHalf(const Instruction& instruction);
  void EmitHalfCvt(const Instruction& instruction);
  // One half of a pair, or the whole of a single one, as f32.
  Value* ReadHalf(const Instruction& instruction, const Operand& operand, Type type, unsigned part);
  Value* FlushHalf(const Instruction& instruction, Value* bits, Type type);  // if .ftz
  Value* WidenHalf(Value* bits, Type type);                                  // i16 to f32
  // f32, or f64 rounded to odd, to i16.
  Value* NarrowHalf(Value* value, Type type, Rounding rounding = Rounding::kNearest);
  Value* DirectHalf(Value* exact, Value* nearest, Type type, Rounding rounding);
  Value* FinishHalf(const Instruction& instruction, Value* value, Type type);
  // Rounded to odd: two f64 to f64, f64 to f32, an integer to f64.
  Value* SumToOdd(Value* a, Value* b);
  Value* NarrowToOdd(Value* value);
  Value* IntegerToOdd(Value* value, bool is_signed);
  Value* OddBits(Value* near, Value* inexact, Value* too_large);
  Value* HalfOperation(const Instruction& instruction, const std::vector<Value*>& inputs);

  // compare.cc
  void EmitSetp(const Instruction& instruction);
  void EmitSet(const Instruction& instruction);
  void EmitSelp(const Instruction& instruction);
  void EmitSlct(const Instruction& instruction);
  Value* Compare(const Instruction& instruction, Type type, unsigned part);
  Value* CompareValues(const Instruction& instruction, Type type, Value* a, Value* b);
  Value* Combine(const Instruction& instruction, Value* compared, std::size_t operand);

  // convert.cc
  void EmitCvt(const Instruction& instruction);
  Value* IntToInt(const Instruction& instruction, Value* value, Type to, Type from);
  Value* IntToFloat(const Instruction& instruction, Value* value, Type to, Type from);
  Value* FloatToInt(const Instruction& instruction, Value* value, Type to, Type from);
  Value* FloatToFloat(const Instruction& instruction, Value* value, Type to, Type from);
  Value* RoundToIntegral(const Instruction& instruction, Value* value);

  // narrow_float.cc
  static bool IsMatrixFloat(Type type);
  void EmitMatrixFloatCvt(const Instruction& instruction);
  Value* ToTf32(const Instruction& instruction, Value* value);
  Value* ToByteFloat(const Instruction& instruction, Value* value, Type type);
  Value* FromByteFloat(Value* byte, Type type);

  // simd_video.cc
  bool EmitVideoFamily(const Instruction& instruction);
  void EmitVideo(const Instruction& instruction, unsigned fields);
  Value* VideoField(const Instruction& instruction, Value* a, Value* b);
  Value* SaturateField(Value* value, unsigned bits, bool is_signed);

  // memory.cc
  struct Address {
    ptx::Space space = ptx::Space::kGeneric;
    Value* value = nullptr;   // i64, or i32 in shared memory; lane 0's if linear
    ptx::LaneShape shape;     // of `value`
    std::int64_t offset = 0;  // in shared memory, added to `value` after its extension to 64 bits

    bool linear() const { return shape.linear(); }
  };
  struct Access {
    llvm::Type* element = nullptr;
    unsigned element_bytes = 0;
    unsigned count = 1;
    unsigned bytes() const { return element_bytes * count; }
    // Whether a GPU makes one access of all of a lane's elements.
    bool is_whole() const { return count > 1 && bytes() <= 16; }
  };
  void EmitLoad(const Instruction& instruction);
  void EmitStore(const Instruction& instruction);
  void EmitMov(const Instruction& instruction);
  void EmitCvta(const Instruction& instruction);
  void EmitIsSpace(const Instruction& instruction);
  void EmitClusterAddress(const Instruction& instruction);
  void EmitMovVector(const Instruction& instruction);
  ptx::Space SpaceOf(const Instruction& instruction, const Operand& operand) const;
  Address AddressOf(const Operand& operand, ptx::Space space);
  Value* LaneAddresses(const Address& address);  // 32 lanes of `value`
  Address Advanced(Address address, std::uint64_t bytes);
  Value* Pointer(const Address& address, Value* value);
  std::vector<Value*> Load(const Address& address, const Access& access, Value* mask);
  std::vector<Value*> LoadContiguous(const Address& address, const Access& access, Value* mask);
  std::vector<Value*> PartElements(Value* all, const Access& access);
  Value* JoinElements(const std::vector<Value*>& values, const Access& access);
  void PrefetchNextTile(const Address& address, const Access& access);
  bool IsContiguous(const Address& address, const Access& access) const;
  bool HasContiguousRows(const Address& address, const Access& access) const;
  unsigned row_lanes() const { return unit_.block_shape().row_width(); }
  Address RowOf(const Address& address, unsigned row);
  Value* RowStarts(const Address& address);
  Value* RowPart(Value* lanes, unsigned row);  // the lanes of one row
  std::vector<Value*> LoadRows(const Address& address, const Access& access, Value* mask);
  std::vector<Value*> LoadRowScalars(const Address& row, const Access& access, Value* mask);
  std::vector<Value*> LoadUniformRows(const Address& address, const Access& access, Value* mask);
  void StoreRows(const Address& address, const Access& access, Value* value, Value* mask);
  Value* Concatenate(std::vector<Value*> parts);
  std::vector<Value*> Gather(const Address& address, const Access& access, Value* mask);
  Value* GatherSmall(Address address, Value* addresses, const Access& access, Value* mask);
  void Store(const Address& address, const Access& access, const std::vector<Value*>& values,
             Value* mask);
  void StoreContiguous(const Address& address, const Access& access,
                       const std::vector<Value*>& values, Value* mask);
  void StoreUniform(const Address& address, const Access& access, const std::vector<Value*>& values,
                    Value* mask);
  void Scatter(const Address& address, const Access& access, const std::vector<Value*>& values,
               Value* mask);
  Value* Repeat(Value* mask, unsigned count);  // every lane `count` times
  void OrderMemory(const Instruction& instruction);

  // whole_access.cc
  std::vector<Value*> LoadWhole(const Address& address, const Access& access, Value* mask);
  void StoreWhole(const Address& address, const Access& access, const std::vector<Value*>& values,
                  Value* mask);
  llvm::Type* WholeType(const Access& access);

  // memory_check.cc: what keeps wild pointers out.
  static bool IsMonotone(const Address& address);
  static bool IsAlignedStepped(const Address& address, unsigned bytes);
  Value* SteppedInRange(const Address& address, unsigned bytes);
  void CheckAccess(const Address& address, unsigned bytes, Value* mask);
  void CheckShared(const Address& address, unsigned bytes, Value* mask);
  Value* InOneRange(const std::vector<Value*>& addresses, unsigned bytes, ptx::Space space);

  // parameters.cc
  void EmitKernelParameterLoad(const Instruction& instruction);
  void EmitParameterLoad(const Instruction& instruction);
  void EmitParameterStore(const Instruction& instruction);
  void SpillParameters();
  Value* ParameterMemory(std::uint32_t symbol);
  Value* LoadParameter(Value* memory, std::uint64_t offset, unsigned bytes);
  void StoreParameter(Value* memory, std::uint64_t offset, Value* value, Value* mask);
  Value* WordPointer(Value* memory, std::uint64_t word);

  // async_copy.cc: done at once, so that waiting for it is nothing.
  void EmitAsyncCopy(const Instruction& instruction);
  void CopyByLane(const Address& to, const Address& from, unsigned words, Value* mask);
  Value* AsyncWord(const Operand& fourth, Address from, std::uint64_t offset, Value* mask);

  // dynamic_stack.cc
  bool UsesDynamicStack() const;
  Value* LocalTop();
  void MoveLocalTop(Value* top);
  void EmitAlloca(const Instruction& instruction);
  void EmitStackSave(const Instruction& instruction);
  void EmitStackRestore(const Instruction& instruction);

  // mbarrier.cc
  void EmitMbarrier(const Instruction& instruction);
  void EmitPendingCount(const Instruction& instruction);
  void EmitCopyArrival(const Instruction& instruction);
  void EmitBulkCopy(const Instruction& instruction);
  Value* CallMbarrier(MbarrierOperation operation, const Address& barrier, Value* argument,
                      Value* mask);
  Value* SpillAddresses(const Address& address);

  // call.cc
  struct CallArguments {
    std::vector<Value*> memory;  // results first
    std::vector<std::uint64_t> bytes;
    std::size_t results = 0;
  };
  void EmitCall(const Instruction& instruction);
  bool IsCallArgument(const Operand& operand) const;
  bool Fits(const ptx::Function& callee, const CallArguments& arguments) const;
  void CallFunction(std::uint32_t function, const std::vector<Value*>& arguments, Value* mask);
  void CallIndirect(const Instruction& instruction, const Operand& callee,
                    const CallArguments& arguments);
  void EmitHeap(const Instruction& instruction, const CallArguments& arguments, bool allocate);
  void EmitPrint(const Instruction& instruction, const CallArguments& arguments);
  void EmitAssertFail(const Instruction& instruction, const CallArguments& arguments);

  // image.cc: textures and surfaces.
  void EmitTexture(const Instruction& instruction);
  void EmitSurface(const Instruction& instruction);
  void EmitImageQuery(const Instruction& instruction);
  Value* ImageSlot(std::size_t offset);  // in the function's TextureLanes
  void PutImageHandles(const Operand& image);
  void PutImageInput(unsigned index, const Operand& operand);
  void PutImageComponent(unsigned index, const Operand& operand, Type type);
  Value* TakeImageComponent(unsigned index, unsigned bits);

  // atomic.cc
  void EmitAtomic(const Instruction& instruction);
  void EmitAtomicElement(const Instruction& instruction, unsigned index);
  bool IsAtomic(const Instruction& instruction, Type type) const;
  Value* AtomicLane(const Instruction& instruction, Value* pointer, Value* operand, Value* compare,
                    llvm::Type* type);
  Value* AtomicSharedLane(const Instruction& instruction, Value* pointer, Value* operand,
                          Value* compare, llvm::Type* type);
  Value* AtomicHalf(const Instruction& instruction, Value* pointer, Value* operand);
  Value* CombineHalves(const Instruction& instruction, Value* a, Value* b, Type type);
  llvm::AtomicRMWInst::BinOp AtomicOperation(const Instruction& instruction, Type type) const;

  // collective.cc: what the members of a collective operation bring, and who they are.
  void EmitDeposit(const Instruction& instruction);
  void CreateDepositSlot();
  Value* IsOneElsewhere(const Operand& members);
  Value* LiveLanes();
  Value* Participants(const Instruction& instruction);
  Value* Contribution(const Instruction& instruction, Type type);
  Value* UnitedMembers(const Operand& members, Value* lanes);

  // warp.cc
  void EmitBarrier(const Instruction& instruction);
  void EmitBlockBarrier(const Instruction& instruction);
  void WaitAtBarrier(const Instruction& instruction, const std::vector<Value*>& arguments);
  void WriteBarrierResult(const Instruction& instruction, BarrierMode mode);
  void EmitShuffle(const Instruction& instruction);
  void EmitVote(const Instruction& instruction);
  void EmitActiveMask(const Instruction& instruction);
  void EmitFence(const Instruction& instruction);
  void EmitTrap(const Instruction& instruction);
  Value* Reduce(const Instruction& instruction, Value* value, Value* members);
  void EmitReduction(const Instruction& instruction);
  void EmitMatch(const Instruction& instruction);
  void EmitElect(const Instruction& instruction);
  void EmitClusterBarrier(const Instruction& instruction);
  Value* ReduceFloat(const Instruction& instruction, Value* value, Value* members);
  Value* ShuffleSource(const Instruction& instruction, Value* lane, Value* clamp, Value*& valid);

  // matrix.cc
  void EmitMatrix(const Instruction& instruction);
  void EmitMatrixProduct(const Instruction& instruction, const ptx::MatrixInstruction& matrix);
  void EmitMatrixTransfer(const Instruction& instruction, const ptx::MatrixInstruction& matrix);
  void AppendTile(const ptx::MatrixInstruction& matrix, const Operand* stride, Value* mask,
                  std::vector<Value*>& arguments);
  Value* WarpAddress(const Address& address, Value* mask);
  Value* FirstLane(Value* lanes, Value* mask);
  bool IsInPlace(const Operand& fragment, unsigned bits) const;
  bool IsFragment(const Operand& operand, const ptx::MatrixInstruction& matrix,
                  ptx::MatrixPart part) const;
  static std::vector<Operand> RegistersOf(const Operand& fragment);
  Value* NewFragment(unsigned bits, std::size_t registers);
  Value* FragmentRegister(Value* memory, unsigned bits, std::size_t index);
  Value* FragmentCopy(ptx::MatrixPart part, unsigned bits, std::size_t registers);
  Value* FragmentMemory(const Operand& fragment, ptx::MatrixPart part, unsigned bits);
  bool IsWrittenInPlace(const Instruction& instruction, const Operand& fragment, unsigned bits,
                        const Operand* read) const;
  void WriteFragment(const Instruction& instruction, const Operand& fragment, unsigned bits,
                     const Operand* read, const std::function<void(Value* memory)>& body);

  // matrix_rows.cc: 8x8 matrices of 16 bits, a row of which is 16 bytes of memory.
  void EmitMatrixRows(const Instruction& instruction);
  void EmitMatrixTranspose(const Instruction& instruction);
  void MoveMatrix(const Instruction& instruction, const Address& rows, unsigned index,
                  const Operand& reg, Value* mask);
  Address MatrixWords(const Address& rows, unsigned index, Value*& mask);
  Value* TransposeHalves(Value* matrix);

  Unit& unit_;
  const ptx::Module& module_;
  std::uint32_t index_;
  llvm::Function* target_;
  llvm::IRBuilder<> b_;
  std::int64_t local_stride_;
  ptx::Function function_;
  ptx::ControlFlow flow_;
  ptx::LaneAnalysis lanes_;
  ptx::FragmentSlots fragments_;
  ptx::BitSet tile_loads_;
  std::vector<Value*> slots_;       // of registers
  std::vector<Value*> mask_slots_;  // of blocks: the lanes that wait there
  std::vector<llvm::BasicBlock*> blocks_;
  std::map<std::uint32_t, Value*> parameter_memory_;
  std::map<std::tuple<ptx::MatrixPart, unsigned, std::size_t>, Value*> fragment_copies_;
  llvm::BasicBlock* entry_ = nullptr;
  llvm::SwitchInst* resume_points_ = nullptr;
  llvm::AllocaInst* deposits_ = nullptr;  // slot of what lanes bring to converged operations
  Value* iterations_ = nullptr;           // slot that counts those of all strided loops
  Value* context_ = nullptr;
  Value* local_frame_ = nullptr;
  Value* image_lanes_ = nullptr;  // made with the first instruction that needs it
  Value* ended_ = nullptr;        // slot of the lanes that have ended here or in a function called
  std::uint32_t block_ = 0;       // being emitted
  Value* mask_ = nullptr;         // its lanes
  Value* all_lanes_ = nullptr;    // that run the function
  bool in_tile_ = false;          // whether the current instruction is one of tile_loads_
  bool scalar_ = false;           // the current instruction is computed for lane 0 only
  ptx::LaneShape result_;         // its shape
};

}  // namespace torpor::emulator
