"""Which of our errors each error of the Kafka client becomes, alone and in a transaction."""

from __future__ import annotations

import kafka.errors as kafka
import pytest

from stream_cgzsl.bus.kafka.errors import Kind, kind_of, translate, unwrapped
from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.errors import BusUnavailable, CgzslError, Fenced, MessageTooLarge, Refused

SETTINGS = KafkaSettings.parse("kafka://a:1", {})

TABLE = {
    Kind.FENCED: "ProducerFenced InvalidProducerEpoch",
    Kind.DENIED: """ClusterAuthorizationFailed DelegationTokenAuthorizationFailed GroupAuthorizationFailed
        IllegalSaslState SaslAuthenticationFailed TopicAuthorizationFailed TransactionalIdAuthorizationFailed
        UnsupportedSaslMechanism Authorization""",
    Kind.REJECTED: "InvalidRecord InvalidTimestamp MessageSizeTooLarge RecordListTooLarge",
    Kind.MISSING: "UnknownTopicOrPartition",
    Kind.EXPIRED: "LogTruncation OffsetOutOfRange",
    Kind.UNAVAILABLE: """Kafka Retriable InvalidMetadata Cancelled CommitFailed KafkaConnection CorrelationId
        InvalidReceive KafkaProtocol KafkaTimeout MetadataEmptyBrokerList NodeNotReady UnknownBrokerId StaleMetadata
        TooManyInFlightRequests QuotaViolation TransactionAborted Unknown CorruptRecord LeaderNotAvailable
        NotLeaderForPartition RequestTimedOut BrokerNotAvailable ReplicaNotAvailable NetworkException
        CoordinatorLoadInProgress CoordinatorNotAvailable NotCoordinator NotEnoughReplicas NotEnoughReplicasAfterAppend
        RebalanceInProgress NotController OutOfOrderSequenceNumber DuplicateSequenceNumber InvalidTxnState
        InvalidProducerIdMapping ConcurrentTransactions TransactionCoordinatorFenced KafkaStorage UnknownProducerId
        FetchSessionIdNotFound InvalidFetchSessionEpoch ListenerNotFound FencedLeaderEpoch UnknownLeaderEpoch
        OffsetNotAvailable PreferredLeaderNotAvailable EligibleLeadersNotAvailable ElectionNotNeeded
        UnstableOffsetCommit ThrottlingQuotaExceeded UnknownTopicId InconsistentTopicId FetchSessionTopicId
        TransactionAbortable ShareSessionNotFound InvalidShareSessionEpoch OperationNotAttempted
        NoOffsetForPartition""",
    Kind.BUG: "IllegalArgument IllegalState",
    Kind.REFUSED: """KafkaConfiguration UnrecognizedBrokerVersion UnsupportedCodec BrokerResponse No InvalidFetchRequest
        StaleControllerEpoch OffsetMetadataTooLarge InvalidTopic InvalidRequiredAcks IllegalGeneration
        InconsistentGroupProtocol InvalidGroupId UnknownMemberId InvalidSessionTimeout InvalidCommitOffsetSize
        UnsupportedVersion IncompatibleBrokerVersion TopicAlreadyExists InvalidPartitions InvalidReplicationFactor
        InvalidReplicationAssignment InvalidConfiguration InvalidRequest UnsupportedForMessageFormat PolicyViolation
        InvalidTransactionTimeout SecurityDisabled LogDirNotFound ReassignmentInProgress DelegationTokenAuthDisabled
        DelegationTokenNotFound DelegationTokenOwnerMismatch DelegationTokenRequestNotAllowed DelegationTokenExpired
        InvalidPrincipalType NonEmptyGroup GroupIdNotFound TopicDeletionDisabled UnsupportedCompressionType
        StaleBrokerEpoch MemberIdRequired GroupMaxSizeReached FencedInstanceId NoReassignmentInProgress
        GroupSubscribedToTopic ResourceNotFound DuplicateResource UnacceptableCredential InconsistentVoterSet
        InvalidUpdateVersion FeatureUpdateFailed PrincipalDeserializationFailure SnapshotNotFound PositionOutOfRange
        DuplicateBrokerRegistration BrokerIdNotRegistered InconsistentClusterId TransactionalIdNotFound
        IneligibleReplica NewLeaderElected OffsetMovedToTieredStorage FencedMemberEpoch UnreleasedInstanceId
        UnsupportedAssignor StaleMemberEpoch MismatchedEndpointType UnsupportedEndpointType UnknownControllerId
        UnknownSubscriptionId TelemetryTooLarge InvalidRegistration InvalidRecordState FencedStateEpoch InvalidVoterKey
        DuplicateVoter VoterNotFound""",
}
"""Every error of the client, without the ending `Error`."""

EVERY = sorted(
    (kind for kind in vars(kafka).values() if isinstance(kind, type) and issubclass(kind, kafka.KafkaError)),
    key=lambda kind: kind.__name__,
)
OURS = {Kind.FENCED: Fenced, Kind.DENIED: Refused, Kind.REJECTED: (Refused, MessageTooLarge)}
"""What an error in a transaction may mean, besides an unknown outcome."""


def short(kind: type) -> str:
    return kind.__name__.removesuffix("Error")


def test_every_error_of_the_client_has_the_kind_of_the_table() -> None:
    wanted = {name: kind for kind, names in TABLE.items() for name in names.split()}
    assert {short(error): kind_of(error("why")) for error in EVERY} == wanted


@pytest.mark.parametrize("error", EVERY, ids=short)
def test_in_a_transaction_whatever_is_not_a_plain_no_leaves_the_outcome_unknown(error: type[kafka.KafkaError]) -> None:
    found = translate(error("why"), SETTINGS, "t", "Write", publisher="p")
    assert isinstance(found, OURS.get(kind_of(error("why")), BusUnavailable))
    if isinstance(found, BusUnavailable):
        assert "'p'" in str(found)
        assert "open a new publisher" in str(found)


STATE = "Cannot execute transactional method because we are in an error state: KafkaError: {}"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Could not execute transactional request for unknown reasons: [Error 7] RequestTimedOutError", "unavailable"),
        ("Unexpected error in AddOffsetsToTxnResponse: [Error -1] UnknownError", "unavailable"),
        ("Unhandled error in EndTxnResponse: [Error 2] CorruptRecordError: bad", "unavailable"),
        ("Could not add partitions: {0: <class 'kafka.errors.UnknownTopicOrPartitionError'>}", "missing"),
        ("something nobody has seen", "unavailable"),
        ("Unhandled error in EndTxnResponse: [Error 90] ProducerFencedError", "fenced"),
        ("Unexpected error in InitProducerIdResponse: [Error 50] InvalidTransactionTimeoutError", "refused"),
        ("[Error 53] TransactionalIdAuthorizationFailedError", "denied"),
    ],
)
def test_an_error_that_the_client_wraps_in_text_counts_as_itself(text: str, kind: str) -> None:
    for error in (kafka.KafkaError(text), kafka.KafkaError(STATE.format(text))):
        assert kind_of(error) is Kind(kind)


def test_an_error_that_the_client_wraps_in_another_counts_as_itself() -> None:
    inner = kafka.TopicAuthorizationFailedError("t")
    assert unwrapped(kafka.KafkaError("Cannot perform send", kafka.KafkaError("because", inner))) is inner


def test_a_fault_of_ours_is_called_one() -> None:
    found = translate(kafka.IllegalStateError("You must call init_transactions"), SETTINGS)
    assert type(found) is CgzslError
    assert "please report it" in str(found)


def test_a_publisher_that_the_cluster_has_forgotten_is_told_so() -> None:
    found = translate(kafka.InvalidProducerIdMappingError(), SETTINGS, publisher="birds.learner")
    assert isinstance(found, BusUnavailable)
    assert "transactional.id.expiration.ms" in str(found)
