"""What a report says, from what the ranks told: words only, no process.

What the report of a cell says …                                where its words stand
---------------------------------------------------------------------------------------
of a rank that raised an error, and what the error means         :mod:`.raised`
of ranks whose error only says that another one has gone         :mod:`.partners`
of a rank whose process has ended, and why                       :mod:`.deaths`
of ranks that wait for one another, or for one that never came   :mod:`.waits`
of ranks that make groups and are waited for                     :mod:`.making`
of ranks that disagree about a collective                        :mod:`.mismatch`
of ranks whose GPU has not done what the cell gave to it         :mod:`.devices`
of ranks that wait or work for another reason                    :mod:`.diagnosis`
of ranks of torchrun that start processes of their own        :mod:`.strays`
beside a rank that had to be freed                               :mod:`.freed`
of torch's own log, folded away                                  :mod:`.torchs_log`
of a backend                                                     :mod:`ranklab.system.backends`

:mod:`.report` puts them together: which comes first, what state the ranks are in now, what is folded away.
:mod:`.evidence` has the data that explanations read, :mod:`.called` the names by which the reader called collectives.
"""
