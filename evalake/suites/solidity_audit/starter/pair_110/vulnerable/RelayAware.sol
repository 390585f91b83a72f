// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title RelayAware
/// @notice Base of contracts that take calls of accounts which pay no gas, through a relay that appends the account.
abstract contract RelayAware {
    address public immutable relay;

    constructor(address relay_) {
        relay = relay_;
    }

    /// @notice The account in whose name the call is made.
    function _sender() internal view returns (address account) {
        if (msg.data.length >= 24 + 32) {
            return address(bytes20(msg.data[msg.data.length - 20:]));
        }
        return msg.sender;
    }
}
