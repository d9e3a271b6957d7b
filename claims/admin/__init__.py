"""The pages of VM networks; each module registers its own."""
