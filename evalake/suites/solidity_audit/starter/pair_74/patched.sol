// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title ArchiveKeys
/// @notice The council appoints a keeper of an archive; a keeper may hand the office on with the two-step offer.
contract ArchiveKeys {
    address public immutable council;
    address public keeper;
    address public offeredTo;
    mapping(bytes32 => bool) public sealedRecord;
    mapping(bytes32 => string) public location;

    event Appointed(address indexed keeper);
    event Dismissed(address indexed keeper);
    event Offered(address indexed to);
    event RecordPlaced(bytes32 indexed id);
    event RecordSealed(bytes32 indexed id, bool closed);

    modifier onlyCouncil() {
        require(msg.sender == council, "not council");
        _;
    }

    modifier onlyKeeper() {
        require(msg.sender == keeper, "not keeper");
        _;
    }

    constructor() {
        council = msg.sender;
    }

    function appoint(address account) external onlyCouncil {
        require(keeper == address(0), "office taken");
        keeper = account;
        emit Appointed(account);
    }

    /// @notice Takes the office away from the keeper.
    function dismiss() external onlyCouncil {
        emit Dismissed(keeper);
        keeper = address(0);
        offeredTo = address(0);
    }

    /// @notice Offers the office to a successor.
    function offerOffice(address to) external onlyKeeper {
        offeredTo = to;
        emit Offered(to);
    }

    /// @notice Takes an offered office.
    function acceptOffice() external {
        require(msg.sender == offeredTo && offeredTo != address(0), "not offered");
        offeredTo = address(0);
        keeper = msg.sender;
        emit Appointed(msg.sender);
    }

    function place(bytes32 id, string calldata where) external onlyKeeper {
        require(!sealedRecord[id], "sealed");
        location[id] = where;
        emit RecordPlaced(id);
    }

    function seal(bytes32 id, bool closed) external onlyKeeper {
        sealedRecord[id] = closed;
        emit RecordSealed(id, closed);
    }
}
