"""A ``%%px`` cell on its way: sent, streamed, waited for, and shown as one panel."""
