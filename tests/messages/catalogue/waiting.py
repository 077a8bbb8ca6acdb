"""A rank waits, and gives up; or another rank is gone."""

from ..entry import Group, Message

BREAKS = "talking/collectives#When it breaks"
LONG = "ranks/meeting-up#How long they wait"

GROUP = Group(
    "A rank waits and gives up, or says that another one is gone",
    "The rank that prints one of these is mostly the victim. The cause is on another rank, which failed, was late, or "
    "made another call. So read the logs of all ranks, and begin with the one that stopped first.",
    (
        Message(
            "Connection closed by peer",
            "The process at the other end has closed its connection, because it has ended.",
            (
                "The other rank raised an exception: its log has the cause.",
                "The other rank has finished the program, because it had fewer batches or skipped a call.",
                "The other process was killed, for example for memory.",
            ),
            "Find the rank that ended first. Its traceback, or the exit code in torchrun's report, is the cause.",
            "RuntimeError: […gloo/transport/tcp/pair.cc:…] Connection closed by peer […]:…. This is typically caused "
            "by "
            "a remote worker crashing. Check the logs of the remote worker before reporting an error. GLHF! 🏖️",
            by="collectives.partner_ended",
            see=BREAKS,
        ),
        Message(
            "Connection reset by peer",
            "The process at the other end has ended while something that was sent to it was still unread.",
            (
                "The other process was killed in the middle of a call, or it crashed.",
                "The other rank raised an exception and ended.",
                "A network device between the machines has dropped the connection.",
            ),
            "Look at the other rank's log and at its exit code. It is the same trouble as `Connection closed by peer`.",
            "RuntimeError: […gloo/transport/tcp/pair.cc:…] Read error […]:…: Connection reset by peer. This is "
            "typically caused by a remote worker hanging or bugs in the application.",
            by="collectives.partner_killed",
            see=BREAKS,
        ),
        Message(
            "recvValue failed on SocketImpl",
            "This rank asked the store where the ranks have met, and the process that holds the store has ended. "
            "`recvValueWithTimeout failed` says the same.",
            (
                "Rank 0, or torchrun on its node, has ended: it failed, was killed or had finished earlier.",
                "The node of rank 0, or the network to it, is gone.",
            ),
            "Look at the log of rank 0 and of its torchrun: the cause stands there. At the very end of a job that "
            "worked, let all ranks wait in a `dist.barrier()` before they leave.",
            "[W… TCPStore.cpp:…] [c10d] recvValue failed on SocketImpl(fd=…, addr=…, remote=…): Failed to recv, got 0 "
            "bytes. Connection was likely closed. Did the remote server shutdown or crash?",
            by="meeting.store_gone",
            see="ranks/meeting-up#When it breaks",
            threads=("https://github.com/pytorch/pytorch/pull/153586",),
        ),
        Message(
            "for recv operation to complete",
            "This rank waited for data during the whole timeout, and nothing came.",
            (
                "Another rank did not make the matching call: it skipped it or made others first.",
                "Another rank is busy, for example rank 0 with an evaluation or a checkpoint.",
                "A `send` is missing, or it has another tag.",
            ),
            "Compare the last call of each rank: `dist.monitored_barrier` names the rank that is missing. If all ranks "
            "are right and one is slow, give `init_process_group` a longer `timeout`; gloo's default is 30 minutes.",
            "RuntimeError: […gloo/transport/tcp/unbound_buffer.cc:…] Timed out waiting 1000ms for recv operation to "
            "complete",
            by="collectives.partner_late",
            see=LONG,
        ),
        Message(
            "for send operation to complete",
            "This rank has sent data, and the other rank did not receive it during the whole timeout.",
            (
                "The other rank does not call `recv`, or it receives from somebody else first.",
                "The ranks are in different collectives.",
            ),
            "Write down for each `send` which `recv` takes it. Point-to-point calls need one of each.",
            "RuntimeError: […gloo/transport/tcp/unbound_buffer.cc:…] Timed out waiting 1000ms for send operation to "
            "complete",
            by="collectives.nobody_receives",
            see="talking/point-to-point#A deadlock, made and read",
        ),
        Message(
            "Application timeout caused pair closure",
            "An earlier call has run into its timeout, and gloo has closed the connection for good.",
            ("The program caught the exception of the first timeout and went on with the same group.",),
            "Search upwards for the first `Timed out waiting`. After a timeout the group is lost: destroy it and "
            "make a "
            "new one, or end the job.",
            "RuntimeError: Application timeout caused pair closure",
            by="collectives.after_a_timeout",
            see=BREAKS,
        ),
        Message(
            "failed to pass monitoredBarrier in",
            "`monitored_barrier` has done its work: the rank that is named second did not arrive in time.",
            (
                "The named rank is slow, hangs, or has left the loop.",
                "The named rank does not call `monitored_barrier` at all.",
            ),
            "Look at the named rank: `py-spy dump --pid` shows the line where it is.",
            "RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 1000 ms",
            by="collectives.late_at_the_monitored_barrier",
            see=LONG,
        ),
        Message(
            "successfully reached monitoredBarrier, but received errors",
            "This rank was in time, but rank 0 gave up because another one was not.",
            ("Another rank is missing; the log of rank 0 names it.",),
            "Read the log of rank 0.",
            "RuntimeError: Rank 2 successfully reached monitoredBarrier, but received errors while waiting for "
            "send/recv from rank 0. Please check rank 0 logs for faulty rank.",
            by="collectives.late_at_the_monitored_barrier",
            see=LONG,
        ),
        Message(
            "Detected mismatch between collectives on ranks",
            "With `TORCH_DISTRIBUTED_DEBUG=DETAIL` torch compares the calls of all ranks, and two of them differ.",
            (
                "A branch such as `if rank == 0:` makes another call on one rank.",
                "The ranks make the same calls in another order.",
            ),
            "The two fingerprints name the rank, the operation and the shape. Make the calls equal on all ranks.",
            "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: "
            "CollectiveFingerPrint(SequenceNumber=…, OpType=ALLREDUCE, …), but Rank 1 is running collective: "
            "CollectiveFingerPrint(SequenceNumber=…, OpType=BROADCAST, …",
            by="collectives.other_collective_detail",
            see="talking/collectives#Another collective",
        ),
        Message(
            "Collectives differ in the following aspects",
            "Two ranks made the same call with tensors of different shapes or types.",
            (
                "The last batch is smaller on one rank.",
                "One rank has another number of tokens, classes or rows.",
            ),
            "Agree on a shape first: exchange the lengths with `all_gather`, then pad, or drop the last batch.",
            "Collectives differ in the following aspects: …Tensor Tensor shapes: 2vs 3",
            by="collectives.other_shape_detail",
            see="talking/collectives#Another collective",
        ),
        Message(
            "op.preamble.length <= op.nbytes",
            "A message came that is longer than the tensor that should take it, and gloo ends the process.",
            (
                "The ranks call the same collective with tensors of different lengths.",
                "The ranks are in different collectives, or in different steps of the loop.",
                "A `recv` has a smaller tensor than its `send`.",
            ),
            "Run again with `TORCH_DISTRIBUTED_DEBUG=DETAIL`, which names the ranks and the shapes. The two numbers "
            "here "
            "are bytes.",
            "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce fail at "
            "…gloo/transport/tcp/pair.cc:…] op.preamble.length <= op.nbytes. 16 vs 4. Received data size doesn't match "
            "expected size. Is there a distributed collective mismatch in your code?",
            by="collectives.other_length_broadcast",
            see="talking/point-to-point#When it breaks",
        ),
        Message(
            "exhausted all inputs.",
            "`Join` was asked to stop all ranks as soon as one has no batch left, and this rank has none.",
            ("The ranks have different numbers of batches, and `throw_on_early_termination=True` was given.",),
            "Catch the exception on all ranks and go on, or leave the option out: `Join` then lets the others finish.",
            "RuntimeError: Rank 0 exhausted all inputs.",
            by="parallel.join_early",
            see="data-parallel/feeding-ranks#When it breaks",
        ),
        Message(
            "Detected at least one rank that exhausted inputs",
            "`Join` stops this rank because another one has no batch left.",
            ("The ranks have different numbers of batches, and `throw_on_early_termination=True` was given.",),
            "See the message above; this one is for the ranks that still had data.",
            "RuntimeError: Detected at least one rank that exhausted inputs. Throwing across all ranks.",
            by="parallel.join_early",
            see="data-parallel/feeding-ranks#When it breaks",
        ),
    ),
)
