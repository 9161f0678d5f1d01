#include "server/controller/model/image_state.h"

#include <gtest/gtest.h>

namespace torpor::server {
namespace {

using Residency = ImageState::Residency;

constexpr GpuIndex kFirst{0};
constexpr GpuIndex kSecond{1};

ImageState ResidentOn(GpuIndex gpu) {
  ImageState image;
  image.BeginArrival(gpu);
  image.Land(gpu);
  EXPECT_TRUE(image.EndArrival().empty());
  return image;
}

TEST(ImageState, IsOnAGpuFromTheAnswerToItsSwapInUntilItIsDropped) {
  ImageState image;
  EXPECT_EQ(image.residency(), Residency::kHost);
  image.BeginArrival(kFirst);
  EXPECT_FALSE(image.gpu());
  EXPECT_TRUE(image.is_arriving());
  image.Land(kFirst);
  EXPECT_TRUE(image.IsOn(kFirst));
  EXPECT_TRUE(image.is_shareable());
  EXPECT_TRUE(image.is_arriving()) << "copies go on";
  (void)image.EndArrival();
  image.BeginLeaving();
  EXPECT_EQ(image.residency(), Residency::kLeaving);
  EXPECT_FALSE(image.is_shareable());
  image.EndLeaving(/*is_dropped=*/true);
  EXPECT_EQ(image.residency(), Residency::kHost);
  EXPECT_TRUE(image.ArrivedLastAt(kFirst));
}

TEST(ImageState, StaysWhereItCouldNotBeDropped) {
  ImageState image = ResidentOn(kFirst);
  image.BeginLeaving();
  image.EndLeaving(/*is_dropped=*/false);
  EXPECT_EQ(image.residency(), Residency::kResident);
}

TEST(ImageState, LeavesAReplicaWhereItWas) {
  ImageState image = ResidentOn(kFirst);
  image.BecomeReplica();
  EXPECT_EQ(image.residency(), Residency::kHost);
  EXPECT_FALSE(image.gpu());
  EXPECT_TRUE(image.HasReplicaOn(kFirst));
  EXPECT_FALSE(image.IsReplicaBehind(kFirst));
  image.BeginArrival(kSecond);
  image.Land(kSecond);
  EXPECT_TRUE(image.IsOn(kSecond));
  EXPECT_TRUE(image.HasReplicaOn(kFirst));
  image.ForgetReplica(kFirst);
  EXPECT_TRUE(image.replicas().empty());
  EXPECT_TRUE(image.IsOn(kSecond));
}

TEST(ImageState, AReplicaGoesUntilItIsGone) {
  ImageState image = ResidentOn(kFirst);
  image.BecomeReplica();
  image.Land(kSecond);
  EXPECT_FALSE(image.IsReplicaGoing(kFirst));
  image.NoteReplicaGoing(kFirst);
  EXPECT_TRUE(image.IsReplicaGoing(kFirst));
  image.ForgetReplica(kFirst);
  EXPECT_FALSE(image.IsReplicaGoing(kFirst));
  image.NoteReplicaGoing(kFirst);
  image.LoseExecutor(kFirst);
  EXPECT_FALSE(image.IsReplicaGoing(kFirst)) << "the next executor has none";
}

TEST(ImageState, AReplicaIsBehindOnceALeaseMayHaveChangedTheImage) {
  ImageState image = ResidentOn(kFirst);
  image.BecomeReplica();
  image.Land(kSecond);
  image.NoteLease(LeaseId{1}, /*is_explicit=*/true);
  EXPECT_TRUE(image.IsReplicaBehind(kFirst));
  image.NoteReplicaInStep(kFirst);
  EXPECT_FALSE(image.IsReplicaBehind(kFirst));
  image.NoteReplicasBehind();
  image.BecomeReplica();
  image.Land(kFirst);
  EXPECT_TRUE(image.IsOn(kFirst));
  EXPECT_FALSE(image.HasReplicaOn(kFirst));
  EXPECT_FALSE(image.IsReplicaBehind(kSecond)) << "it had the image last";
}

TEST(ImageState, RunsWhatWaitsForItsArrivalOnce) {
  ImageState image;
  image.BeginArrival(kFirst);
  int runs = 0;
  image.AfterArrival([&] { ++runs; });
  for (const auto& task : image.EndArrival()) task();
  EXPECT_TRUE(image.EndArrival().empty());
  EXPECT_EQ(runs, 1);
}

TEST(ImageState, IsLostWithItsExecutor) {
  ImageState image = ResidentOn(kFirst);
  image.AddPeerHolder(kSecond);
  EXPECT_FALSE(image.LoseExecutor(kSecond));
  EXPECT_TRUE(image.peer_holders().empty());
  EXPECT_TRUE(image.LoseExecutor(kFirst));
  EXPECT_EQ(image.residency(), Residency::kHost);
}

TEST(ImageState, ALostReplicaIsNoLoss) {
  ImageState image = ResidentOn(kFirst);
  image.BecomeReplica();
  image.SetSource(kFirst);
  EXPECT_FALSE(image.LoseExecutor(kFirst));
  EXPECT_EQ(image.residency(), Residency::kHost);
  EXPECT_FALSE(image.HasReplicaOn(kFirst));
  EXPECT_EQ(image.source(), kFirst) << "its memory may still be mapped elsewhere";
}

TEST(ImageState, GoesOnLeavingWhenAReplicaIsLost) {
  ImageState image = ResidentOn(kFirst);
  image.BecomeReplica();
  image.BeginArrival(kSecond);
  image.Land(kSecond);
  image.BeginLeaving();
  EXPECT_FALSE(image.LoseExecutor(kFirst));
  EXPECT_EQ(image.residency(), Residency::kLeaving);
}

TEST(ImageState, WorkOutsideOfRequestsIsUnsavedEachTime) {
  ImageState image;
  EXPECT_FALSE(image.has_changes());
  image.NoteLease(LeaseId{1}, /*is_explicit=*/false);
  EXPECT_TRUE(image.has_changes());
  EXPECT_EQ(image.unsaved_lease(), LeaseId{1});
  image.NoteSaved(LeaseId{1});
  EXPECT_FALSE(image.has_changes());
  EXPECT_FALSE(image.unsaved_lease());
  image.NoteLease(LeaseId{2}, /*is_explicit=*/false);
  EXPECT_EQ(image.unsaved_lease(), LeaseId{2});
}

TEST(ImageState, OfRequestsOnlyTheFirstIsUnsaved) {
  ImageState image;
  image.NoteLease(LeaseId{1}, /*is_explicit=*/true);
  EXPECT_EQ(image.unsaved_lease(), LeaseId{1});
  image.NoteSaved(LeaseId{1});
  image.NoteLease(LeaseId{2}, /*is_explicit=*/true);
  EXPECT_TRUE(image.has_changes());
  EXPECT_FALSE(image.unsaved_lease());
}

TEST(ImageState, AWriteBackThatBeganEarlierDoesNotSaveALaterLease) {
  ImageState image;
  image.NoteLease(LeaseId{1}, /*is_explicit=*/false);
  const LeaseId before = image.unsaved_lease();
  image.NoteLease(LeaseId{2}, /*is_explicit=*/false);
  image.NoteSaved(before);
  EXPECT_EQ(image.unsaved_lease(), LeaseId{2});
}

TEST(ImageState, OfAnEarlierTorpordItIsReplayedWithTheFirstLease) {
  ImageState image;
  image.Restore(/*was_saved=*/true, /*replays=*/true);
  EXPECT_FALSE(image.gpu());
  EXPECT_TRUE(image.is_replay_due());
  image.NoteLease(LeaseId{1}, /*is_explicit=*/true);
  EXPECT_FALSE(image.is_replay_due());
  EXPECT_FALSE(image.unsaved_lease()) << "it was saved once";
  ImageState fresh;
  fresh.Restore(/*was_saved=*/false, /*replays=*/true);
  fresh.NoteLease(LeaseId{1}, /*is_explicit=*/true);
  EXPECT_TRUE(fresh.unsaved_lease());
}

}  // namespace
}  // namespace torpor::server
